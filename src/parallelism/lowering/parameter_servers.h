// SPDX-License-Identifier: Apache-2.0
// Data parallelism with parameter servers: Li et al., "Scaling Distributed Machine Learning with
// the Parameter Server", OSDI 2014.
//
// Parameters are sharded evenly over the servers, bucket by bucket. A worker pushes the gradients
// of a bucket to all of them as its backward pass makes it; the CPU of a server applies what comes,
// one after the other, in the order in which it comes; and sends the new weights back.
// How old these may be is the bound s of Ho et al., "More Effective Distributed ML via a Stale
// Synchronous Parallel Parameter Server", NeurIPS 2013: for its step t + 1 a worker gets weights
// once the steps up to t - s of all workers are in them. With 0 it is synchronous; without a bound
// workers wait for nobody.
#pragma once

#include <cstddef>
#include <vector>

#include "network/contract/network.h"
#include "parallelism/closed_forms/step_time.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/operation_graph.h"
#include "parallelism/walk/step_job.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The part of one worker's step that a bucket has on one server.
struct ServerTurn {
  OperationId update;  // Its gradients are applied.
  OperationId pull;    // The worker is sent weights for its next step.
};

struct ServerGraph {
  OperationGraph graph = OperationGraph(0);  // Workers, then servers.
  int workers = 0;
  int servers = 0;
  int steps = 0;
  std::size_t buckets = 0;
  std::vector<ServerTurn> turns;  // Indexed by at().

  [[nodiscard]] std::size_t at(int server, std::size_t bucket, int worker, int step) const;
};

// Ranks of the job, whose plan has servers, are the workers. `memory`: of a host memory, for each
// server on it.
[[nodiscard]] ServerGraph lower_servers(const StepJob& job, Bandwidth memory);

// Steps that the weights lack that a worker is sent, by the worker that is furthest behind.
struct Staleness {
  double mean = 0.0;
  int max = 0;
};
[[nodiscard]] Staleness staleness_of(const ServerGraph& lowered, const GraphResult& result);

struct ParameterServerRun {
  int workers = 0;
  int servers = 0;
  int steps = 0;
  SimTime finish;  // End of all steps of all workers.
  Staleness staleness;
  StepTime step;  // `finish` over the steps, with the parts of the worker that waits least.
  std::vector<LinkUse> link_use = {};  // Loads of links in all steps.
};

// Workers and servers of a plan on the nodes of a cluster.
struct ServerPlaces {
  Cluster workers;              // The GPUs that work.
  std::vector<NodeId> servers;  // Host memories.
};
// Servers have hosts of their own, the last ones, or those of workers, one after the other. Throws
// ConfigError where there are none left.
[[nodiscard]] ServerPlaces server_places(const Cluster& cluster, const ParameterServers& servers);

// All traffic on one network, at `fidelity`, but not Fidelity::Analytical. Throws ConfigError for
// plans with anything but data ranks.
[[nodiscard]] ParameterServerRun run_servers(const StepJob& job, const ServerPlaces& places,
                                             Fidelity fidelity, const ComputeJitter& jitter);

}  // namespace trainyard
