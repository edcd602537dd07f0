// SPDX-License-Identifier: Apache-2.0
// The time of one training step, in parts that add up to it exactly.
//
// Layers and ends of the model make passes of stages, passes a pipeline (pipeline_timeline.h). The
// step is the time line of its busiest rank: what it computes, the traffic that shows, and what it
// waits for; then gradients, optimizer and weights. Exposed traffic is worked out from closed forms
// over the times of collectives alone; docs/models/step.md has all of them.
#pragma once

#include "parallelism/operators/step_parts.h"
#include "parallelism/traffic/group_times.h"
#include "parallelism/walk/step_job.h"
#include "sim/units.h"

namespace trainyard {

struct StepTime {
  SimTime time;
  StepParts parts;       // Add up to `time`.
  int busiest_rank = 0;  // Busiest rank of the pipeline.
  // Times of the busiest rank for one micro-batch, all its chunks.
  SimTime forward;
  SimTime backward;
};

// Throws as check_modelled().
[[nodiscard]] StepTime step_time(const StepJob& job, GroupTimes& times);

}  // namespace trainyard
