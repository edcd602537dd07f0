// SPDX-License-Identifier: Apache-2.0
// Schedules whose backward is one pass.
#pragma once

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

// All forwards, then all backwards, the last first. Huang et al., arXiv 1811.06965.
extern const PipelineSchedule kGPipe;
// One forward, one backward, with a flush. PipeDream-Flush: Narayanan et al., arXiv 2006.09503;
// as in Megatron, arXiv 2104.04473.
extern const PipelineSchedule kOneForwardOneBackward;
// The same over several chunks a rank: rank i has the stages i, p + i, ... arXiv 2104.04473.
extern const PipelineSchedule kInterleaved;

}  // namespace trainyard
