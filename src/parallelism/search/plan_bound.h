// SPDX-License-Identifier: Apache-2.0
// A time that no run of a plan can undercut, without its pipeline and without most of its traffic:
// what a search prunes with.
//
// With F and B what a stage computes forward and backward for one micro-batch, tensor traffic, what
// is recomputed and the launches of the host included, each rank r of the pipeline needs
//
//   sum of F over the stages before r + m * (sum of F + B over its stages)
//                                     + sum of B over the stages before r :
//
// its first pass waits for the forward of the first micro-batch through all stages before it, then
// it has its own passes one by one, and after its last one, always the backward of its first stage,
// the gradient goes back through the stages before it. The last sum holds where a backward is one
// pass; a schedule of two directions, whose ranks begin at both ends, has neither sum. The bound is
// the longest of the ranks, with what a step costs whatever its size and the jitter of all that.
#pragma once

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/traffic/group_times.h"
#include "sim/units.h"

namespace trainyard {

// Never above step_time() of the same job with the same times; of collectives, those of the tensor
// ranks are asked for. Throws as step_time().
[[nodiscard]] SimTime plan_bound(const StepJob& job, GroupTimes& times);

}  // namespace trainyard
