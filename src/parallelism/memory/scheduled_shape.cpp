// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/scheduled_shape.h"

#include <cstddef>
#include <vector>

#include "parallelism/model/pipeline_stages.h"

namespace trainyard {
namespace {

std::vector<SavedTensor> tensors_of(const Model& model, const ParallelPlan& plan,
                                    const MemorySettings& settings, const ExpertLoads& loads,
                                    const ModelUnit& unit) {
  if (unit.place == StepPlace::Embedding) {
    return embedding_tensors(model, plan, settings.activations);
  }
  if (unit.place == StepPlace::Head) {
    return head_tensors(model, plan, settings.activations);
  }
  return kept_tensors(model, model.layers[static_cast<std::size_t>(unit.layer)], plan,
                      activation_options(model, unit.layer, plan, settings, loads));
}

}  // namespace

SavedBytes kept_bytes(const Model& model, const ParallelPlan& plan, const MemorySettings& settings,
                      const ExpertLoads& loads, const ModelUnit& unit) {
  return saved_bytes(tensors_of(model, plan, settings, loads, unit), plan.tokens());
}

PipelineShape scheduled_shape(const Model& model, const ParallelPlan& plan,
                              const MemorySettings& settings, const ExpertLoads& loads) {
  PipelineShape shape = plan.pipeline_shape();
  if (!shape.schedule->fills_memory) {
    return shape;
  }
  MemorySettings defined = settings;
  if (has_experts(model) || model.modulation) {
    // Alternate products are not defined for these. step_memory() refuses such a plan, but steps
    // are timed without it too.
    defined.activations.selective = SelectiveRecompute::AttentionCore;
  }
  for (const PipelineStage& stage : pipeline_stages(plan, model)) {
    StageMemory& sum = shape.stage_memory.emplace_back();
    for_each_unit(stage, [&](const ModelUnit& unit) {
      const SavedBytes kept = kept_bytes(model, plan, defined, loads, unit);
      sum.forward += kept.forward;
      sum.weight += kept.weight;
    });
  }
  return shape;
}

}  // namespace trainyard
