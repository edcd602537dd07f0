// SPDX-License-Identifier: Apache-2.0
// `trainyard collective --groups`: several communicators at once on one network, and each alone.
#pragma once

#include <spdlog/logger.h>

#include <functional>
#include <memory>

#include "cli/collective/collective_nccl.h"
#include "cli/collective/collective_request.h"
#include "cli/collective/groups_file.h"
#include "report/results/groups_report.h"
#include "sim/trace.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct GroupsOutcome {
  GroupsReport report;
  bool complete = true;  // Whether all runs were.
  std::unique_ptr<const Cluster> cluster = {};
  // Runs all groups at the largest size again and records them; nothing with NCCL's event model.
  // The request and this outcome must outlive it.
  std::function<ShownRun(TraceRecorder&)> show = {};
};

// The bytes of a group, where `size` is that of the command line: as aligned_size() has them.
// Throws ConfigError where nothing is left.
[[nodiscard]] Bytes size_of_group(const GroupSpec& group, Operation operation, Bytes size);

// Throws ConfigError.
[[nodiscard]] GroupsOutcome run_groups(const CollectiveRequest& request, spdlog::logger& log);

}  // namespace trainyard
