// SPDX-License-Identifier: Apache-2.0
// Both directions at once, each with half of the micro-batches; a rank has the stages i and
// p - 1 - i. DeepSeek-V3, arXiv 2412.19437; deepseek-ai/DualPipe.
#pragma once

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

extern const PipelineSchedule kDualPipe;

}  // namespace trainyard
