// SPDX-License-Identifier: Apache-2.0
// Counts what a training step puts on each link of the cluster instead of timing it: all groups of
// all kinds of parallelism with the bytes that step_traffic.h gives them, on the routes that they
// take (call_traffic.h). Unlike the times of groups, which are of each group alone, this sees all
// that meet on a link.
#pragma once

#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/traffic/call_traffic.h"
#include "parallelism/workload/software_profile.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Limit beyond which GPUs are refused: every group is routed.
inline constexpr int kMaxCountedRanks = 4096;

// Links that carry anything in one step, by id. Tokens are spread evenly over experts; what is
// computed again makes its traffic again. Throws ConfigError where ranks cannot reach each other.
[[nodiscard]] std::vector<LinkTraffic> step_link_traffic(const Cluster& cluster, const Model& model,
                                                         const ParallelPlan& plan,
                                                         const SoftwareProfile& software,
                                                         const CallRuntime& runtime);

}  // namespace trainyard
