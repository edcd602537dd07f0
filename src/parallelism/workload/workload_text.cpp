// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/workload_text.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>

#include "parallelism/model/pipeline_schedule.h"
#include "sim/config.h"
#include "sim/config_text.h"

namespace trainyard {
namespace {

std::string plan_yaml(const ParallelPlan& plan) {
  std::string text = fmt::format(
      "tensor: {}, sequence_parallel: {}, context: {}, context_kind: {}, pipeline: {}, schedule: "
      "{}, chunks: {}, data: {}, expert: {}, expert_tensor: {}, zero_stage: {}, recompute: {}",
      plan.tensor, plan.has_sequence_parallelism, plan.context, to_string(plan.context_kind),
      plan.pipeline, to_string(plan.schedule), plan.chunks, plan.data, plan.expert,
      plan.expert_tensor, plan.zero_stage, to_string(plan.recompute));
  if (plan.shard_group != 0) {
    text += fmt::format(", shard_group: {}", plan.shard_group);
  }
  if (plan.offload.any()) {
    text += fmt::format(", offload: {{optimizer: {}, activations: {}}}", plan.offload.optimizer,
                        plan.offload.activations);
  }
  if (plan.compression) {
    const GradientCompression& given = *plan.compression;
    text += fmt::format(
        ", gradient_compression: {{method: {}{}{}}}", to_string(given.method),
        given.method == CompressionMethod::PowerSgd ? fmt::format(", rank: {}", given.rank) : "",
        given.method == CompressionMethod::TopK ? fmt::format(", ratio: {}", given.ratio) : "");
  }
  if (!plan.stage_layers.empty()) {
    text += fmt::format(", stage_layers: [{}]", fmt::join(plan.stage_layers, ", "));
  }
  if (plan.order != kMegatronOrder) {
    text +=
        fmt::format(", order: [{}, {}, {}, {}]", to_string(plan.order[0]), to_string(plan.order[1]),
                    to_string(plan.order[2]), to_string(plan.order[3]));
  }
  return "{" + text + "}";
}

// A name of the folder of models, which means the same wherever the workload lies.
bool is_plain_name(const ConfigNode& model) {
  if (!model.is_scalar()) {
    return false;
  }
  const std::string name = model.as_string();
  return name.find('/') == std::string::npos && !name.ends_with(".yaml");
}

// Writes the text as a YAML value.
std::string in_single_quotes(const std::string& text) {
  std::string result = "'";
  for (const char letter : text) {
    result += letter == '\'' ? std::string("''") : std::string(1, letter);
  }
  return result + "'";
}

}  // namespace

std::string workload_with_plan(const std::filesystem::path& file,
                               const std::filesystem::path& models,
                               const std::vector<std::string>& settings, const ParallelPlan& plan,
                               const std::string& source) {
  ConfigDocument document = ConfigDocument::load(file);
  bool changes_model = false;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (setting.starts_with("model.") && !changes_model) {
      document.compose(document.root().required("model"), models);
      changes_model = true;
    }
    document.set(setting.substr(0, equals), setting.substr(equals + 1));
  }
  const ConfigNode model = document.root().required("model");
  if (!is_plain_name(model)) {
    document.compose(model, models);
  }
  document.set("source", in_single_quotes(source));
  document.set("plan", plan_yaml(plan));
  document.set("batch", fmt::format("{{micro: {}, global: {}, sequence: {}}}", plan.micro_batch,
                                    plan.global_batch, plan.sequence));
  return yaml_text(document.root());
}

}  // namespace trainyard
