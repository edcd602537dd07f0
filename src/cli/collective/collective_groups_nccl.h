// SPDX-License-Identifier: Apache-2.0
// The runtime nccl of `trainyard collective --groups` (parallelism/traffic/concurrent_calls.h).
#pragma once

#include <optional>
#include <vector>

#include "cli/collective/collective_request.h"
#include "cli/collective/groups_file.h"
#include "report/results/groups_report.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Adds the rows, runs and notes of all groups at each of these sizes; a group may have its own.
// Throws ConfigError for what NCCL or its event model does not have.
void run_nccl_groups(const CollectiveRequest& request, const Cluster& cluster,
                     const std::vector<GroupSpec>& groups,
                     const std::vector<std::optional<Bytes>>& sizes, GroupsReport& report);

}  // namespace trainyard
