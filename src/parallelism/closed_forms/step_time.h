// SPDX-License-Identifier: Apache-2.0
// The time of one training step, in parts that add up to it exactly.
//
// Layers and ends of the model make passes of stages, passes a pipeline (pipeline_timeline.h). The
// step is the time line of its critical rank: what it computes, the traffic that shows, and what it
// waits for; then gradients, optimizer and weights. Exposed traffic is computed from closed forms
// over the times of collectives alone; docs/models/step.md has all of them.
#pragma once

#include <span>
#include <vector>

#include "parallelism/operators/step_parts.h"
#include "parallelism/traffic/group_times.h"
#include "parallelism/walk/step_job.h"
#include "sim/units.h"

namespace trainyard {

struct StepTime {
  SimTime time;
  StepParts parts;        // Add up to `time`.
  int critical_rank = 0;  // Critical rank of the pipeline.
  // Times of the critical rank for one micro-batch, all its chunks.
  SimTime forward;
  SimTime backward;
};

// Adds what a step costs whatever its size and, where computation has no jitter of its own, the
// time that servers lose by waiting for each other; sums the parts up.
void complete(StepTime& step, SimTime fixed, std::span<const int> server_of_rank,
              bool has_jitter = false);

// Returns the times that PipelineTimes::transfer_to_neighbour takes, in the pipeline on most
// servers; zero between the last rank and the first where no message goes. Some pairs are in one
// server or below one leaf while others are not.
[[nodiscard]] std::vector<SimTime> stage_transfers(const StepJob& job, GroupTimes& times);

// Throws as check_modelled().
[[nodiscard]] StepTime step_time(const StepJob& job, GroupTimes& times);

}  // namespace trainyard
