// SPDX-License-Identifier: Apache-2.0
// The shape of a pipeline with what its schedule needs to know of memory.
#pragma once

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/activation_memory.h"

namespace trainyard {

// Returns the activations of a micro-batch that the unit keeps.
[[nodiscard]] SavedBytes kept_bytes(const Model& model, const ParallelPlan& plan,
                                    const MemorySettings& settings, const ExpertLoads& loads,
                                    const ModelUnit& unit);

// Returns plan.pipeline_shape(), with PipelineShape::stage_memory where the schedule fills memory.
// The plan must have passed check().
[[nodiscard]] PipelineShape scheduled_shape(const Model& model, const ParallelPlan& plan,
                                            const MemorySettings& settings,
                                            const ExpertLoads& loads);

}  // namespace trainyard
