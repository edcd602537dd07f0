// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/foreign_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "parallelism/graph/graph_blame.h"
#include "parallelism/graph/graph_network.h"
#include "parallelism/run/step_run.h"
#include "parallelism/traffic/cluster_times.h"
#include "parallelism/workload/foreign_text.h"
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

// Work is counted in 64 bits, in 256ths of a picosecond (work_progress.h).
constexpr SimTime kLongestOperation = seconds(9 * 3600);

// Checks that neither an operation nor a path through the graph overflows.
void check_times(const ForeignWorkload& workload, const GraphRunOptions& options) {
  const OperationGraph& graph = workload.graph;
  __int128 total = 0;
  __int128 longest = 0;
  for (std::uint32_t id = 0; id < graph.operations().size(); ++id) {
    const auto rank = static_cast<std::size_t>(graph.rank_of(OperationId(id)));
    const __int128 ppm = options.compute_ppm.empty() ? 1'000'000 : options.compute_ppm[rank];
    const __int128 own = options.operation_ppm.empty() ? 1'000'000 : options.operation_ppm[id];
    const __int128 time =
        ppm * own / 1'000'000 * graph.operations()[id].time.picoseconds() / 1'000'000;
    longest = std::max(longest, time);
    total += time;
  }
  if (longest > kLongestOperation.picoseconds() || total > kMostForeignTime) {
    throw ConfigError(fmt::format(
        "{}: expected operations of at most 9 hours each and 50 days in all, as they are scaled, "
        "found {:.0f} s and {:.0f} s",
        to_string(workload.format), static_cast<double>(longest) / 1e12,
        static_cast<double>(total) / 1e12));
  }
}

}  // namespace

ForeignRun run_foreign(const Cluster& cluster, const ForeignWorkload& workload,
                       const ForeignTables& tables, const GraphRunOptions& options) {
  const OperationGraph& graph = workload.graph;
  check_times(workload, options);
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
