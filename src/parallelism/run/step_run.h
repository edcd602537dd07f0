// SPDX-License-Identifier: Apache-2.0
// A workload on a cluster, from plan to time: the path that commands and comparisons with measured
// steps share.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/lowering/parameter_servers.h"
#include "parallelism/lowering/step_graph.h"
#include "parallelism/memory/host_memory.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/run/compression_figures.h"
#include "parallelism/run/graphed_run.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct StepRun {
  ParallelPlan plan;
  StepTime step = {};
  Overlap overlap = {};
  ParallelPlan held = {};                         // Plan for which GPUs hold data in memory.
  MemoryUse memory = {};                          // At its peak, on the rank that holds most.
  Bytes memory_size = {};                         // Memory of its GPU, as it reports it.
  std::string memory_verdict = {};                // Which rank, when, and what it holds; one line.
  std::optional<HostMemoryUse> host_memory = {};  // Use by a plan with offload.
  // Dense, of one GPU in the precision of the workload, the mean of several kinds; FLOP/s.
  double peak = 0.0;
  std::optional<std::string> kinds_note = {};  // Which GPUs set the pace, of several kinds.
  std::optional<CompressionFigures> compression = {};
  // Collectives and transfers that were asked for, and those that were simulated: the others are
  // equal ones.
  std::size_t calls = 0;
  std::size_t simulated = 0;
  std::optional<PacketStats> packets = {};  // Counts of packets on one network.
  ExtraResults extras = {};                 // Of that network.
  // The least share of its rate that a group, or a message between stages, has beside those of its
  // kind.
  double min_share = 1.0;
  // Names what collectives were beyond the rows that the profile rests on, if it says.
  std::vector<std::string> beyond_profile = {};
  std::optional<StepGraphRun> graph = {};          // Run of StepMethod::Graph.
  std::optional<ParameterServerRun> servers = {};  // Run of a plan with parameter servers, instead.
  std::optional<SimTime> usual_time = {};          // Time of the step without slow rank and jitter.
};

// Runs on all GPUs of the cluster. Throws ConfigError, one line, for a plan that does not fit and
// for what is not modelled.
[[nodiscard]] StepRun run_workload(const Cluster& cluster, const Workload& workload,
                                   const SoftwareProfile& software, const StepTables& tables);

}  // namespace trainyard
