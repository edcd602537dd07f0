// SPDX-License-Identifier: Apache-2.0
// Memory of a rank in a step of a recommendation model, at its peak: the way back through the
// interaction, when sums of tables, activations and the gradients of both are there.
#pragma once

#include <cstddef>

#include "parallelism/memory/recommender_time.h"
#include "parallelism/memory/step_memory.h"
#include "sim/units.h"

namespace trainyard {

// Tables are in 32 bits with what their optimizer holds. MLPs are too, with a copy in 16 bits where
// they run in that.
[[nodiscard]] MemoryUse recommender_memory(const RecommenderJob& job, std::size_t rank);

// The share of a GPU's memory that tables may take where they are sharded. TorchRec's planner
// keeps 15 % back (torchrec/distributed/planner/storage_reservations.py).
inline constexpr double kTableShareOfMemory = 0.85;

// Elements of tables, with what the optimizer holds, that are in that share.
[[nodiscard]] std::int64_t room_for_tables(const RecommenderWorkload& workload, Bytes memory);

}  // namespace trainyard
