// SPDX-License-Identifier: Apache-2.0
// Computes how long activations and gradients are on their way from one rank of a pipeline to
// another.
#pragma once

#include <vector>

#include "parallelism/traffic/group_times.h"
#include "parallelism/walk/step_job.h"
#include "sim/units.h"

namespace trainyard {

// Returns the times that PipelineTimes::transfer_to_neighbour takes, in the pipeline on most
// servers; zero between the last rank and the first where no message goes. Some pairs are in one
// server or below one leaf while others are not.
[[nodiscard]] std::vector<SimTime> stage_transfers(const StepJob& job, GroupTimes& times);

}  // namespace trainyard
