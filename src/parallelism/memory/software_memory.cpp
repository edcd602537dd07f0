// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/software_memory.h"

#include <vector>

#include "parallelism/model/pipeline_stages.h"

namespace trainyard {

MemorySettings memory_settings(const SoftwareProfile& software) {
  const bool is_unfused = software.attention == "unfused";
  if (!is_unfused && software.fusion != "fused") {
    return memory_settings("pytorch-fsdp");
  }
  MemorySettings settings = memory_settings(is_unfused ? "megatron-2022" : "megatron-core");
  settings.states.gradient = software.gradient_bytes;
  settings.activations.keeps_projections = software.full_recompute == FullRecompute::Unprojected;
  return settings;
}

StepMemory step_memory(const Model& model, const ParallelPlan& plan,
                       const SoftwareProfile& software, const ExpertLoads& loads) {
  std::vector<int> layers;
  for (const PipelineStage& stage : pipeline_stages(plan, model)) {
    layers.push_back(stage.layers);
  }
  MemorySettings settings = memory_settings(software);
  if (plan.element_bytes == 4) {
    // Weights are their own master copy.
    settings.states = {.weight = 4, .compute = 4, .gradient = 4, .optimizer = 8};
  }
  return step_memory(model, plan, layers, settings, loads);
}

}  // namespace trainyard
