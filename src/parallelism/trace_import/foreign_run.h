// SPDX-License-Identifier: Apache-2.0
// A workload of another tool, run on a cluster: rank r is the GPU r.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "hw/parts/catalogue.h"
#include "nccl/timing/profile.h"
#include "network/contract/network.h"
#include "parallelism/graph/graph_runner.h"
#include "parallelism/trace_import/foreign_workload.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The tables that StepTables (step_run.h) has.
struct ForeignTables {
  const Catalogue& catalogue;
  const nccl::Profile* nccl = nullptr;
  Fidelity fidelity = Fidelity::Flow;
  std::optional<Fidelity> engine = {};
  bool shares_network = false;
};

struct ForeignRun {
  GraphResult result;
  std::vector<StepParts> ranks;  // Parts by rank in the graph; each adds up to `result.finish`.
  std::size_t busiest = 0;       // Rank among these that waits least for others.
  // Collectives and messages that were asked for and simulated, where each is alone.
  std::size_t calls = 0;
  std::size_t simulated = 0;
};

// Throws ConfigError for what cannot run on that traffic, and for a run that does not end, with who
// waits for whom.
[[nodiscard]] ForeignRun run_foreign(const Cluster& cluster, const ForeignWorkload& workload,
                                     const ForeignTables& tables, const GraphRunOptions& options);

}  // namespace trainyard
