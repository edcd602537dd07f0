// SPDX-License-Identifier: Apache-2.0
#include "parallelism/foreign_run.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

#include "parallelism/cluster_times.h"
#include "parallelism/graph_blame.h"
#include "parallelism/graph_network.h"
#include "parallelism/step_run.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

GraphResult run_shared(const Cluster& cluster, const OperationGraph& graph,
                       const ForeignTables& tables, const GraphRunOptions& options) {
  if (graph.is_folded()) {
    throw ConfigError(fmt::format(
        "--traffic shared: expected all {} ranks in the workload, found {}: traffic of the others "
        "is not known",
        graph.ranks(), graph.present().size()));
  }
  if (graph.ranks() > kMostUnfoldedRanks) {
    throw ConfigError(
        fmt::format("--traffic shared: expected a workload of at most {} ranks, found {}",
                    kMostUnfoldedRanks, graph.ranks()));
  }
  Simulator simulator;
  SharedNetwork network(simulator, cluster, tables.fidelity);
  NetworkTraffic traffic(simulator, cluster, network);
  return run_graph(simulator, graph, traffic, options);
}

GraphResult run_alone(const Cluster& cluster, const OperationGraph& graph,
                      const ForeignTables& tables, const GraphRunOptions& options,
                      ForeignRun& run) {
  std::optional<ClusterTimes::Nccl> runtime;
  if (tables.nccl != nullptr) {
    runtime.emplace(ClusterTimes::Nccl{
        .catalogue = tables.catalogue, .profile = *tables.nccl, .engine = tables.engine});
  }
  ClusterTimes times(cluster, runtime, tables.fidelity);
  TimedTraffic traffic(times);
  Simulator simulator;
  GraphResult result = run_graph(simulator, graph, traffic, options);
  run.calls = times.calls();
  run.simulated = times.simulated();
  return result;
}

}  // namespace

std::vector<int> servers_of_gpus(const Cluster& cluster) {
  std::vector<int> servers;
  for (const NodeId gpu : cluster.gpus) {
    const std::optional<ServerId> server = cluster.topology.node(gpu).server;
    CHECK(server.has_value(), "every GPU of a cluster stands in a server");
    servers.push_back(static_cast<int>(server->value()));
  }
  return servers;
}

ForeignRun run_foreign(const Cluster& cluster, const ForeignWorkload& workload,
                       const ForeignTables& tables, const GraphRunOptions& options) {
  const OperationGraph& graph = workload.graph;
  ForeignRun run;
  run.result = tables.shares_network ? run_shared(cluster, graph, tables, options)
                                     : run_alone(cluster, graph, tables, options, run);
  if (!run.result.finished()) {
    throw ConfigError(fmt::format("{}: expected operations that all end, found that {} ({} wait)",
                                  to_string(workload.format), run.result.waits.front().text,
                                  run.result.waits.size()));
  }
  run.ranks = blame_of(graph, run.result, options);
  for (std::size_t index = 1; index < run.ranks.size(); ++index) {
    if (run.ranks[index][StepPart::Bubble] < run.ranks[run.busiest][StepPart::Bubble]) {
      run.busiest = index;
    }
  }
  return run;
}

}  // namespace trainyard
