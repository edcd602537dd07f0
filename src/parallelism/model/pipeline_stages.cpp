// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_stages.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstddef>

namespace trainyard {
namespace {

std::vector<int> dealt_out(int layers, int stages) {
  const auto count = static_cast<std::size_t>(stages);
  std::vector<int> share(count, layers / stages);
  const int left = layers % stages;
  if (left == 0) {
    return share;
  }
  const bool without_head = (layers + 1) % stages == 0;
  const bool without_ends = (layers + 2) % stages == 0 && stages > 1;
  if (without_head || without_ends) {
    share.assign(count, layers / stages + 1);
    --share.back();
    if (!without_head) {
      --share.front();
    }
    return share;
  }
  const std::size_t first = (count - static_cast<std::size_t>(left)) / 2;
  for (std::size_t index = first; index < first + static_cast<std::size_t>(left); ++index) {
    ++share[index];
  }
  return share;
}

}  // namespace

std::vector<PipelineStage> pipeline_stages(const ParallelPlan& plan, const Model& model) {
  const std::vector<int> share =
      plan.stage_layers.empty()
          ? dealt_out(static_cast<int>(model.layers.size()), plan.pipeline_shape().stages())
          : plan.stage_layers;
  std::vector<PipelineStage> stages;
  int first = 0;
  for (const int layers : share) {
    stages.push_back({.first_layer = first, .layers = layers});
    first += layers;
  }
  stages.front().has_embedding = true;
  stages.back().has_head = true;
  return stages;
}

std::string name_of(const ModelUnit& unit) {
  constexpr std::array kNames{"embedding", "layer", "head", "optimizer"};
  const char* const name = kNames.at(static_cast<std::size_t>(unit.place));
  return unit.place == StepPlace::Layer ? fmt::format("{} {}", name, unit.layer) : name;
}

}  // namespace trainyard
