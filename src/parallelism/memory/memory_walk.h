// SPDX-License-Identifier: Apache-2.0
// One rank of a pipeline through the passes of its schedule, layer by layer: what it holds at each
// moment (step_memory.h).
//
// A pass depends on what it is and on what is there when it begins, and a pipeline in its steady
// state has the same there again and again: such a pass is walked once, and recalled from then on.
#pragma once

#include <cstdint>

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/expert_routing.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/memory_settings.h"

namespace trainyard {

enum class RepeatedPasses : std::uint8_t { Recall, WalkAgain };  // To the same end.

// Returns the memory of a rank for a plan that step_memory() has checked, with the stages of
// pipeline_stages().
[[nodiscard]] RankMemory rank_memory(const Model& model, const ParallelPlan& plan,
                                     const MemorySettings& settings, const ExpertLoads& loads,
                                     int rank, RepeatedPasses repeated = RepeatedPasses::Recall);

}  // namespace trainyard
