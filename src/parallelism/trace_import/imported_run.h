// SPDX-License-Identifier: Apache-2.0
// A workload of another tool, run on a cluster: rank r is the GPU r.
#pragma once

#include "parallelism/graph/graph_runner.h"
#include "parallelism/run/graphed_run.h"
#include "parallelism/trace_import/imported_workload.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Throws ConfigError for what cannot run on that traffic, and for a run that does not end, with who
// waits for whom.
[[nodiscard]] GraphedRun run_imported(const Cluster& cluster, const ImportedWorkload& workload,
                                      const StepTables& tables, const GraphRunOptions& options);

}  // namespace trainyard
