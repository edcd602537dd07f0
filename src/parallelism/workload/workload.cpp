// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/workload.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <optional>
#include <span>

#include "parallelism/workload/foreign_files.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostRanks = 50'000;  // Limit of an axis; the product of four fits 64 bits.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 32;
constexpr std::int64_t kMostLayers = 100'000;

constexpr std::array<std::string_view, 3> kRecomputes{"none", "selective", "full"};
constexpr std::array<std::string_view, 2> kContextKinds{"ring", "alltoall"};
constexpr std::array<std::string_view, 2> kServerPlaces{"own", "workers"};
constexpr std::array<std::string_view, 3> kConsistencies{"synchronous", "stale", "asynchronous"};
constexpr std::array<std::string_view, 4> kAxes{"tensor", "context", "data", "pipeline"};

int ranks(const ConfigNode& node, std::string_view key, int otherwise) {
  const auto found = node.optional(key);
  return found ? static_cast<int>(found->as_integer(1, kMostRanks)) : otherwise;
}

std::array<PlanAxis, 4> read_order(const ConfigNode& node) {
  const auto list = node.optional("order");
  if (!list) {
    return kMegatronOrder;
  }
  const std::vector<ConfigNode> items = list->items();
  std::array<PlanAxis, 4> order{};
  if (items.size() != order.size()) {
    list->fail("tensor, context, data and pipeline in some order", fmt::format("{}", items.size()));
  }
  for (std::size_t index = 0; index < order.size(); ++index) {
    order[index] = static_cast<PlanAxis>(items[index].as_choice(kAxes));
    for (std::size_t before = 0; before < index; ++before) {
      if (order[before] == order[index]) {
        items[index].fail("each of tensor, context, data and pipeline once", items[index].found());
      }
    }
  }
  return order;
}

ParameterServers read_servers(const ConfigNode& node) {
  constexpr std::int64_t kMostSteps = 1000;
  ParameterServers servers{.count = ranks(node, "count", 1)};
  servers.on_workers = node.choice_or_first("place", kServerPlaces) == 1;
  const std::size_t consistency = node.choice_or_first("consistency", kConsistencies);
  const auto bound = node.optional("bound");
  if (consistency == 1) {
    servers.bound = static_cast<int>(node.required("bound").as_integer(0, kMostSteps));
  } else if (bound) {
    bound->fail("a bound with consistency: stale only", bound->found());
  }
  if (consistency == 2) {
    servers.bound.reset();
  }
  if (const auto steps = node.optional("steps")) {
    servers.steps = static_cast<int>(steps->as_integer(1, kMostSteps));
  }
  return servers;
}

ParallelPlan read_plan(const ConfigNode& node) {
  ParallelPlan plan{
      .tensor = ranks(node, "tensor", 1),
      .has_sequence_parallelism = node.optional_bool("sequence_parallel").value_or(false),
      .context = ranks(node, "context", 1),
      .pipeline = ranks(node, "pipeline", 1),
      .schedule = pipeline_schedules()[node.choice_or_first("schedule", pipeline_schedule_names())],
      .chunks = ranks(node, "chunks", 1),
      .data = ranks(node, "data", 1),
      .expert = ranks(node, "expert", 1),
      .expert_tensor = ranks(node, "expert_tensor", 1)};
  plan.context_kind =
      static_cast<ContextParallelism>(node.choice_or_first("context_kind", kContextKinds));
  plan.recompute = static_cast<Recompute>(node.choice_or_first("recompute", kRecomputes));
  plan.order = read_order(node);
  if (const auto stage = node.optional("zero_stage")) {
    plan.zero_stage = static_cast<int>(stage->as_integer(0, 3));
  }
  plan.shard_group = ranks(node, "shard_group", 0);
  if (const auto offload = node.optional("offload")) {
    plan.offload = {.optimizer = offload->optional_bool("optimizer").value_or(false),
                    .activations = offload->optional_bool("activations").value_or(false)};
  }
  if (const auto servers = node.optional("servers")) {
    plan.servers = read_servers(*servers);
  }
  if (const auto layers = node.optional("stage_layers")) {
    for (const ConfigNode& item : layers->items()) {
      plan.stage_layers.push_back(static_cast<int>(item.as_integer(0, kMostLayers)));
    }
  }
  return plan;
}

// An image has as many tokens as its model says.
void read_batch(const ConfigNode& node, const Model& model, ParallelPlan& plan) {
  plan.micro_batch = node.required("micro").as_integer(1, kMostTokens);
  plan.global_batch = node.required("global").as_integer(1, kMostTokens);
  const auto sequence = model.patches ? node.optional("sequence") : node.required("sequence");
  plan.sequence = sequence ? sequence->as_integer(1, kMostTokens) : model.patches->tokens();
  if (model.patches && plan.sequence != model.patches->tokens()) {
    sequence->fail(fmt::format("no sequence, or {}, the tokens of an image of {}",
                               model.patches->tokens(), model.title),
                   sequence->found());
  }
}

OverlapChoice read_overlap(const ConfigNode& root) {
  OverlapChoice overlap;
  if (const auto node = root.optional("overlap")) {
    overlap = {.tensor = node->optional_bool("tensor"),
               .data = node->optional_bool("data"),
               .pipeline = node->optional_bool("pipeline"),
               .expert = node->optional_bool("expert")};
  }
  return overlap;
}

// Checks the kind before the model is looked for, which is in another folder.
void check_kind(const ConfigNode& root) {
  if (root.is_map() && root.choice_or_first("kind", kWorkloadKinds) != 0) {
    const ConfigNode kind = root.required("kind");
    kind.fail("transformer, as only `trainyard step` runs recommendation models", kind.found());
  }
}

// Puts the file of a named model in the place of its name, and keeps the name.
void compose_model(ConfigDocument& document, const std::filesystem::path& models,
                   std::string& name) {
  const auto model = document.root().optional("model");
  if (!model) {
    return;  // An error when it is read.
  }
  if (model->is_scalar()) {
    const std::filesystem::path given(model->as_string());
    name = given.extension() == ".yaml" ? given.stem().string() : given.string();
  }
  document.compose(*model, models);
}

}  // namespace

std::string compose_workload(ConfigDocument& document, const std::filesystem::path& models,
                             const std::vector<std::string>& settings) {
  std::string model_name = std::filesystem::path(document.name()).stem().string();
  compose_model(document, models, model_name);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(fmt::format("--set: expected key.path=value, found \"{}\"", setting));
    }
    document.set(setting.substr(0, equals), setting.substr(equals + 1));
    compose_model(document, models, model_name);
  }
  return model_name;
}

Workload build_workload(ConfigDocument& document, const std::filesystem::path& models,
                        const std::vector<std::string>& settings) {
  const std::filesystem::path file(document.name());
  check_kind(document.root());
  const std::string model_name = compose_workload(document, models, settings);
  const ConfigNode root = document.root();
  root.required("source").skip();
  const ConfigNode plan = root.required("plan");
  Workload workload{
      .name = file.stem().string(),
      .title = root.required("title").as_string(),
      .model = read_model(root.required("model"), model_name),
      .software = root.required("software").as_string(),
      .precision = static_cast<Precision>(root.choice_or_first("precision", precision_names())),
      .plan = read_plan(plan),
      .data_fills_cluster = !plan.optional("data"),
      .overlap = read_overlap(root)};
  read_batch(root.required("batch"), workload.model, workload.plan);
  workload.plan.element_bytes = row_of(workload.precision).element_bytes;
  if (const auto routing = root.optional("routing")) {
    workload.routing = read_expert_loads(*routing, workload.model);
  }
  document.finish();
  return workload;
}

Workload load_workload(const std::filesystem::path& file, const std::filesystem::path& models,
                       const std::vector<std::string>& settings) {
  if (const std::optional<ForeignFormat> foreign = recognise_foreign(file)) {
    throw ConfigError(
        fmt::format("{}: expected a workload in YAML, with model and plan, found {} of another "
                    "tool, which trainyard step alone runs",
                    file.string(), to_string(*foreign)));
  }
  ConfigDocument document = ConfigDocument::load(file);
  return build_workload(document, models, settings);
}

ParallelPlan plan_for(const Workload& workload, int gpus) {
  ParallelPlan plan = workload.plan;
  if (workload.data_fills_cluster) {
    const std::int64_t others =
        std::int64_t{plan.tensor} * std::int64_t{plan.context} * std::int64_t{plan.pipeline};
    if (gpus % others != 0) {
      throw ConfigError(fmt::format(
          "plan: expected tensor x context x pipeline to divide the number of GPUs, found {} x {} "
          "x {} = {} and {}",
          plan.tensor, plan.context, plan.pipeline, others, gpus));
    }
    plan.data = static_cast<int>(gpus / others);
  }
  // With one tensor rank there is nothing to split, as in Megatron-LM (arguments.py).
  plan.has_sequence_parallelism = plan.has_sequence_parallelism && plan.tensor > 1;
  check(plan, workload.model, gpus);
  if (plan.expert > 1 && workload.routing.imbalance > plan.expert) {
    throw ConfigError(fmt::format(
        "routing: expected an imbalance of at most the expert ranks, as one cannot get more than "
        "all tokens, found {:g} and {}",
        workload.routing.imbalance, plan.expert));
  }
  return plan;
}

}  // namespace trainyard
