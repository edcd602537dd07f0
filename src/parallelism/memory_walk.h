// SPDX-License-Identifier: Apache-2.0
// One rank of a pipeline through the passes of its schedule, layer by layer: what it holds at each
// moment (step_memory.h).
#pragma once

#include <span>

#include "parallelism/expert_routing.h"
#include "parallelism/memory_settings.h"
#include "parallelism/model.h"
#include "parallelism/parallel_plan.h"
#include "parallelism/step_memory.h"

namespace trainyard {

// What step_memory() has checked.
[[nodiscard]] RankMemory rank_memory(const Model& model, const ParallelPlan& plan,
                                     const MemorySettings& settings, const ExpertLoads& loads,
                                     int rank, std::span<const int> stage_layers);

}  // namespace trainyard
