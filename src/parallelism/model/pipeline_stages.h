// SPDX-License-Identifier: Apache-2.0
// Which layers each stage of a pipeline has, and the walk over them.
//
// The plan may say it. Otherwise layers are divided evenly; where that does not come out even but
// does with the head, or the head and the embedding, counted as a layer each, the last stage, or
// both ends, have one less, as the 126 layers of Llama 3 405B on 128 places (arXiv 2407.21783,
// section 3.3.2). Otherwise the layers left over go to the stages in the middle, one each.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"

namespace trainyard {

struct PipelineStage {
  int first_layer = 0;
  int layers = 0;
  bool has_embedding = false;  // The first stage.
  bool has_head = false;       // The last one, with the last norm and the loss.
};

// Returns the stages of the model in their order, for a plan that passed check().
[[nodiscard]] std::vector<PipelineStage> pipeline_stages(const ParallelPlan& plan,
                                                         const Model& model);

// The part of a pass in which something is.
enum class StepPlace : std::uint8_t { Embedding, Layer, Head, Optimizer };

// A part of the model that a rank computes, gathers and reduces as one.
struct ModelUnit {
  StepPlace place = StepPlace::Layer;
  int layer = 0;  // Layer of the model, counted from 0, for StepPlace::Layer.

  auto operator<=>(const ModelUnit&) const = default;
};

// "embedding", "layer 3", "head", "optimizer".
[[nodiscard]] std::string name_of(const ModelUnit& unit);

// Calls `visit` with each unit of the stage, in the order of a forward pass.
template <typename Visit>
void for_each_unit(const PipelineStage& stage, const Visit& visit) {
  if (stage.has_embedding) {
    visit(ModelUnit{.place = StepPlace::Embedding});
  }
  for (int layer = stage.first_layer; layer < stage.first_layer + stage.layers; ++layer) {
    visit(ModelUnit{.layer = layer});
  }
  if (stage.has_head) {
    visit(ModelUnit{.place = StepPlace::Head});
  }
}

}  // namespace trainyard
