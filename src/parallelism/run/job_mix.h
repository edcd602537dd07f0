// SPDX-License-Identifier: Apache-2.0
// Training jobs on servers of their own that share the fabric of one cluster, and what each loses
// by the others.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/contract/network.h"
#include "network/engines/network_extras.h"
#include "parallelism/run/step_run.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct MixedJob {
  std::string name;  // For errors.
  const Workload& workload;
  const SoftwareProfile& software;
  // Servers of the cluster, counted from 0; all GPUs that the cluster uses of each are the job's,
  // ranks in the order of servers.
  std::vector<int> servers;
};

struct MixedJobTimes {
  int gpus = 0;
  SimTime alone;                       // A step with the whole fabric to itself.
  std::vector<SimTime> together = {};  // Steps beside the others.

  [[nodiscard]] double mean_seconds() const;
  [[nodiscard]] SimTime longest() const;
  [[nodiscard]] double slowdown() const;  // Mean over alone.
};

// The traffic that crossed the links of the cluster while the jobs ran together, and for how long.
struct JobMix {
  std::vector<MixedJobTimes> jobs;
  SimTime time;                   // From the beginning to the end of the last step.
  std::vector<LinkUse> link_use;  // In that time.
  NetworkStats network = {};
  ExtraResults extras = {};
};

// Every job begins at once and repeats its step until all have done `steps` (graph_jobs.h). Traffic
// runs as the plain runtime's, at tables.fidelity, which contends; of `tables` `nccl`, `engine`,
// `method` and what belongs to one step are not used. The times hold neither the constant time of a
// step nor the spread of ranks.
//
// Throws ConfigError for servers that are not there or belong to two jobs, more than
// kMaxUnfoldedRanks GPUs, and as run_workload().
[[nodiscard]] JobMix run_job_mix(const Cluster& cluster, std::span<const MixedJob> jobs,
                                 const StepTables& tables, int steps);

}  // namespace trainyard
