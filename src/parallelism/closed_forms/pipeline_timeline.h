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
  SimTime transfer;  // Time of an activation or its gradient to another rank,
  // or of each rank to each of its neighbours, by neighbour_index(), where they are not all alike.
  std::vector<SimTime> transfer_to_neighbour = {};
  PipelineTransfers transfers = PipelineTransfers::Asynchronous;
  double pair_share = 1.0;  // Share of the sum of its passes that a pair takes (DualPipe).
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
  // The longest time from the first start to the last end of one rank: the step where no barrier
  // comes before the optimizer.
  [[nodiscard]] SimTime longest_span() const;
  // Passes of the rank, without what it waits; transfers of its own count as waiting.
  [[nodiscard]] SimTime busy(int rank) const;
  // Forward passes whose activations the rank holds at once, from the start of the forward to the
  // end of the gradient of the weights.
  [[nodiscard]] int max_activations(int rank) const;
};

// `times` has one entry for each stage of the shape, and none or one for each pair of ranks.
[[nodiscard]] PipelineTimeline run_pipeline(const PipelineShape& shape, const PipelineTimes& times);

}  // namespace trainyard
