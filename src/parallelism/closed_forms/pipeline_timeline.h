// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule in time, with nothing but passes and transfers: each rank runs its passes in
// their order, each pass as soon as the rank is free and its input is there. For schedules alone
// and as a lower bound in searches; the step runner has everything else.
#pragma once

#include <cstddef>
#include <vector>

#include "parallelism/model/pipeline_schedule.h"
#include "sim/units.h"

namespace trainyard {

enum class PipelineTransfers : std::uint8_t {
  Asynchronous,  // They delay the consumer only.
  Synchronous,   // They also keep the ranks of both ends busy, as in Megatron without overlap.
};

// Ranks are a ring: of each, the next one and the one before.
[[nodiscard]] std::size_t neighbour_index(int from, int to, int ranks);

struct PipelineTimes {
  std::vector<StageTimes> stages;
  // Times of an activation or its gradient from each rank to each of its neighbours, by
  // neighbour_index(); empty: none takes any.
  std::vector<SimTime> transfer_to_neighbour = {};
  PipelineTransfers transfers = PipelineTransfers::Asynchronous;
};

struct TimedPass {
  Pass pass;
  SimTime start;
  SimTime end;
};

struct PipelineTimeline {
  std::vector<std::vector<TimedPass>> ranks;  // In the order of execution.

  // Returns the time from the first start, at zero, to the last end.
  [[nodiscard]] SimTime makespan() const;
  // Passes of the rank, without what it waits; transfers of its own count as waiting.
  [[nodiscard]] SimTime busy(int rank) const;
};

// `times` has one entry for each stage of the shape, and none or two for each rank.
[[nodiscard]] PipelineTimeline run_pipeline(const PipelineShape& shape, const PipelineTimes& times);

}  // namespace trainyard
