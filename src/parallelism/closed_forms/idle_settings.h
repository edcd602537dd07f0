// SPDX-License-Identifier: Apache-2.0
// Settings of a workload that change nothing in a plan, because what they are about is not there.
#pragma once

#include <string>
#include <vector>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"

namespace trainyard {

// One text for each, as "plan.schedule: the pipeline has one stage". `plan`: that of plan_for().
[[nodiscard]] std::vector<std::string> idle_settings(const Workload& workload,
                                                     const ParallelPlan& plan,
                                                     const SoftwareProfile& software);

}  // namespace trainyard
