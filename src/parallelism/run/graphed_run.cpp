// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/graphed_run.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/graph/graph_blame.h"
#include "parallelism/graph/graph_network.h"

namespace trainyard {

const GpuRates& no_rates() {
  static const GpuRates none;
  return none;
}

GraphOnCluster::GraphOnCluster(const Cluster& cluster, const StepTables& tables)
    : cluster_(cluster), tables_(tables) {
  std::optional<ClusterTimes::Nccl> nccl;
  if (tables.nccl != nullptr) {
    nccl.emplace(ClusterTimes::Nccl{.profile = *tables.nccl,
                                    .engine = tables.engine,
                                    .version = tables.nccl_version,
                                    .searches = tables.searches});
  }
  times_.emplace(cluster, nccl, tables.fidelity);
}

void GraphOnCluster::with_traffic(const std::function<void(Simulator&, GraphTraffic&)>& use) {
  Simulator simulator;
  if (!tables_.shares_network) {
    TimedTraffic traffic(*times_);
    use(simulator, traffic);
    return;
  }
  SharedNetwork network(simulator, cluster_, tables_.fidelity);
  NetworkTraffic traffic(simulator, cluster_, network);
  use(simulator, traffic);
}

GraphedRun GraphOnCluster::run(const OperationGraph& graph, const GraphRunOptions& options,
                               std::string_view name) {
  GraphedRun run;
  with_traffic([&](Simulator& simulator, GraphTraffic& traffic) {
    run.result = run_graph(simulator, graph, traffic, options);
  });
  check_finished(run.result, fmt::format("{}: expected operations that all end", name));
  run.ranks = blame_of(graph, run.result, options);
  run.busiest = busiest_of(run.ranks);
  run.calls = times_->calls();
  run.simulated = times_->simulated();
  run.beyond_profile.assign(times_->beyond_profile().begin(), times_->beyond_profile().end());
  return run;
}

}  // namespace trainyard
