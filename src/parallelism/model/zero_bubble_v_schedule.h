// SPDX-License-Identifier: Apache-2.0
// Two chunks a rank in a V and a split backward. Qi et al., arXiv 2401.10241, section 6; the order
// is that of PyTorch's ScheduleZBVZeroBubble.
#pragma once

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

extern const PipelineSchedule kZeroBubbleV;

}  // namespace trainyard
