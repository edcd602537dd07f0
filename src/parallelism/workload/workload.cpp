// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/workload.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <optional>
#include <tuple>

#include "parallelism/model/adapters.h"
#include "parallelism/workload/imported_files.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxRanks = 50'000;  // Limit of an axis; the product of four fits 64 bits.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 32;
constexpr std::int64_t kMaxLayers = 100'000;

constexpr std::array<std::string_view, 2> kServerPlaces{"own", "workers"};
constexpr std::array<std::string_view, 3> kConsistencies{"synchronous", "stale", "asynchronous"};

constexpr Whole kRankCount{1, kMaxRanks};
constexpr Whole kTokenCount{1, kMaxTokens};

std::array<PlanAxis, 4> read_order(const ConfigNode& list) {
  const std::vector<ConfigNode> items = list.items();
  std::array<PlanAxis, 4> order{};
  if (items.size() != order.size()) {
    list.fail("tensor, context, data and pipeline in some order", fmt::format("{}", items.size()));
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

void server_fields(Fields& fields, ParameterServers& servers) {
  constexpr std::int64_t kMaxSteps = 1000;
  std::size_t consistency = 0;
  fields.optional("count", servers.count, kRankCount, "Servers: 1.");
  fields.optional("place", servers.on_workers, Choice{kServerPlaces}, "Hosts of servers.");
  fields.optional("consistency", consistency, Choice{kConsistencies}, "What a worker waits for.");
  fields.where(consistency == 1, [&] {
    fields.required("bound", servers.bound, Whole{0, kMaxSteps}, "Steps, if `stale`.");
  });
  fields.check([&](const ConfigNode& node) {
    if (const auto bound = node.optional("bound"); bound && consistency != 1) {
      bound->fail("a bound with consistency: stale only", bound->found());
    }
  });
  if (consistency == 2) {
    servers.bound.reset();
  }
  fields.optional("steps", servers.steps, Whole{1, kMaxSteps}, "Steps that are run: 8.");
}

void offload_fields(Fields& fields, PlanOffload& offload) {
  fields.optional("optimizer", offload.optimizer, Flag{}, "States of the optimizer.");
  fields.optional("activations", offload.activations, Flag{}, "Activations of layers.");
}

void plan_fields(Fields& fields, Workload& workload) {
  ParallelPlan& plan = workload.plan;
  const std::vector<std::string_view> schedules = pipeline_schedule_names();
  const auto schedule = [&](const ConfigNode& node) {
    return pipeline_schedules()[node.as_choice(schedules)];
  };
  fields.optional("tensor", plan.tensor, kRankCount, "GPUs that split each layer: 1.");
  fields.optional("sequence_parallel", plan.has_sequence_parallelism, Flag{},
                  "Tensor ranks split by tokens what they do alike.");
  fields.optional("context", plan.context, kRankCount, "GPUs that split each sequence: 1.");
  fields.optional("pipeline", plan.pipeline, kRankCount, "GPUs that split the layers: 1.");
  fields.optional("schedule", plan.schedule, Via{Choice{schedules}, schedule},
                  "Schedule of the pipeline.");
  fields.optional("chunks", plan.chunks, kRankCount, "Stages of a pipeline rank: 1.");
  workload.data_fills_cluster =
      !fields.optional("data", plan.data, kRankCount, "Replicas: what the cluster has room for.");
  fields.optional("expert", plan.expert, kRankCount, "GPUs that share out the experts: 1.");
  fields.optional("expert_tensor", plan.expert_tensor, kRankCount, "GPUs of an expert: 1.");
  fields.optional("context_kind", plan.context_kind, Choice{kContextKinds}, "How keys travel.");
  fields.optional("recompute", plan.recompute, Choice{kRecomputes}, "What is run again.");
  fields.optional("order", plan.order, Via{List{Choice{kAxes}}, read_order},
                  "Axes from neighbours to those furthest apart.");
  fields.optional("zero_stage", plan.zero_stage, Whole{0, 3}, "Stage of ZeRO: 0.");
  fields.optional("shard_group", plan.shard_group, kRankCount,
                  "Ranks over which ZeRO shards: all.");
  fields.optional("offload", plan.offload, Group{offload_fields}, "What is in host memory.");
  fields.optional("servers", plan.servers, Group{server_fields}, "Parameter servers.");
  fields.optional("gradient_compression", plan.compression, Group{compression_fields},
                  "What data ranks send instead of whole gradients.");
  fields.optional("stage_layers", plan.stage_layers, List{Whole{0, kMaxLayers}},
                  "Layers of each stage: as even as can be.");
}

// An image has as many tokens as its model says.
void batch_fields_of(Fields& fields, Workload& workload) {
  ParallelPlan& plan = workload.plan;
  const Model& model = workload.model;
  fields.required("micro", plan.micro_batch, kTokenCount, "Sequences of a micro-batch.");
  workload.batch_fills_cluster = !fields.optional(
      "global", plan.global_batch, kTokenCount, "Sequences of a step: a micro-batch of each GPU.");
  if (!model.patches) {
    fields.where(true, [&] {
      fields.required("sequence", plan.sequence, kTokenCount, "Tokens, if no patches.");
    });
    return;
  }
  plan.sequence = model.patches->tokens();
  fields.optional("sequence", plan.sequence, kTokenCount, "");
  fields.check([&](const ConfigNode& node) {
    if (plan.sequence != model.patches->tokens()) {
      const ConfigNode sequence = node.required("sequence");
      sequence.fail(fmt::format("no sequence, or {}, the tokens of an image of {}",
                                model.patches->tokens(), model.title),
                    sequence.found());
    }
  });
}

void overlap_fields_of(Fields& fields, Workload& workload) {
  OverlapChoice& overlap = workload.overlap;
  fields.optional("tensor", overlap.tensor, Flag{}, "Collectives of tensor ranks.");
  fields.optional("data", overlap.data, Flag{}, "Gradients and weights.");
  fields.optional("pipeline", overlap.pipeline, Flag{}, "Transfers between stages.");
  fields.optional("expert", overlap.expert, Flag{}, "Tokens to experts and back.");
  fields.optional("bucket", workload.plan.bucket, SomeAmount{},
                  "Size of a bucket of gradients: as the software has it.");
}

// Checks the kind before the model is looked for, which is in another folder.
void check_kind(const ConfigNode& root) {
  if (root.is_map() && root.choice_or_first("kind", kWorkloadKinds) != 0) {
    const ConfigNode kind = root.required("kind");
    kind.fail("transformer, as only `trainyard step` runs the other kinds", kind.found());
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

void compression_fields(Fields& fields, GradientCompression& compression) {
  constexpr double kMinRatio = 0.0001;
  fields.required("method", compression.method, Choice{kCompressions}, "What data ranks sum up.");
  const bool has_rank = compression.method == CompressionMethod::PowerSgd;
  const bool has_ratio = compression.method == CompressionMethod::TopK;
  fields.where(has_rank, [&] {
    fields.optional("rank", compression.rank, Whole{1, 1024}, "Columns, if `powersgd`: 1.");
  });
  fields.where(has_ratio, [&] {
    fields.required("ratio", compression.ratio, Number{kMinRatio, 1.0},
                    "Share of the elements that are sent, if `topk`.");
  });
  fields.check([&](const ConfigNode& node) {
    if (const auto rank = node.optional("rank"); rank && !has_rank) {
      rank->fail("a rank with method: powersgd only", rank->found());
    }
    if (const auto ratio = node.optional("ratio"); ratio && !has_ratio) {
      ratio->fail("a ratio with method: topk only", ratio->found());
    }
  });
}

void workload_fields(Fields& fields, Workload& workload) {
  std::size_t kind = 0;
  fields.optional("kind", kind, Choice{kWorkloadKinds}, "Kind of model.");
  fields.required("source", std::ignore, Unread{}, "Where the run is from.");
  fields.required("title", workload.title, Text{}, "Name for people.");
  fields.required("model", workload.model, Composed{model_fields}, "Model.");
  const auto of_adapters = [&](Fields& adapters, Adapters& given) {
    adapter_fields(adapters, given, workload.model);
  };
  fields.optional("adapters", workload.model.adapters, Group{of_adapters},
                  "What is trained beside frozen weights: nothing is frozen.");
  fields.required("software", workload.software, Text{}, "Name of a profile of software.");
  fields.optional("precision", workload.precision, Choice{precision_names()},
                  "Precision of layers.");
  fields.required("plan", workload, Group{plan_fields}, "How GPUs share the work.");
  fields.optional("overlap", workload, Group{overlap_fields_of},
                  "What is overlapped: as the software does.");
  fields.required("batch", workload, Group{batch_fields_of}, "Sizes.");
  workload.plan.element_bytes = row_of(workload.precision).element_bytes;
  const auto routing_fields = [&](Fields& routing, ExpertLoads& loads) {
    expert_load_fields(routing, loads, workload.model);
  };
  fields.optional("routing", workload.routing, Group{routing_fields}, "Loads of experts: even.");
}

bool is_workload_of(const std::filesystem::path& file, std::string_view kind) {
  if (file.extension() != ".yaml" && file.extension() != ".yml") {
    return false;
  }
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  return root.is_map() && kWorkloadKinds.at(root.choice_or_first("kind", kWorkloadKinds)) == kind;
}

Workload build_workload(ConfigDocument& document, const std::filesystem::path& models,
                        const std::vector<std::string>& settings) {
  check_kind(document.root());
  Workload workload;
  workload.name = std::filesystem::path(document.name()).stem().string();
  const std::string model_name = compose_workload(document, models, settings);
  read_fields(document.root(), workload, workload_fields);
  workload.model.name = model_name;
  document.finish();
  return workload;
}

Workload load_workload(const std::filesystem::path& file, const std::filesystem::path& models,
                       const std::vector<std::string>& settings) {
  if (const std::optional<ImportedFormat> imported = recognise_imported(file)) {
    throw ConfigError(
        fmt::format("{}: expected a workload in YAML, with model and plan, found {} of another "
                    "tool, which trainyard step alone runs",
                    file.string(), to_string(*imported)));
  }
  ConfigDocument document = ConfigDocument::load(file);
  return build_workload(document, models, settings);
}

ParallelPlan batched_plan(const Workload& workload, int gpus) {
  ParallelPlan plan = workload.plan;
  if (workload.batch_fills_cluster) {
    plan.global_batch = plan.micro_batch * gpus;
  }
  return plan;
}

ParallelPlan plan_for(const Workload& workload, int gpus) {
  ParallelPlan plan = batched_plan(workload, gpus);
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
