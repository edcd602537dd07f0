// SPDX-License-Identifier: Apache-2.0
// Schedules with one chunk a rank and a split backward. Qi et al., arXiv 2401.10241.
#pragma once

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

// As many activations as 1F1B.
extern const PipelineSchedule kZeroBubbleH1;
// At most 2p - 1 activations, and no idle time between a rank's first and last pass for
// m >= 2p - 1.
extern const PipelineSchedule kZeroBubbleH2;

}  // namespace trainyard
