// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/imported_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>

#include "parallelism/workload/imported_text.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

void check_shared(const OperationGraph& graph) {
  if (graph.is_folded()) {
    throw ConfigError(fmt::format(
        "--traffic shared: expected all {} ranks in the workload, found {}: traffic of the others "
        "is not known",
        graph.ranks(), graph.present().size()));
  }
  if (graph.ranks() > kMaxUnfoldedRanks) {
    throw ConfigError(
        fmt::format("--traffic shared: expected a workload of at most {} ranks, found {}",
                    kMaxUnfoldedRanks, graph.ranks()));
  }
}

// Work is counted in 64 bits, in 256ths of a picosecond (work_progress.h).
constexpr SimTime kLongestOperation = seconds(9 * 3600);

// Checks that neither an operation nor a path through the graph overflows.
void check_times(const ImportedWorkload& workload, const GraphRunOptions& options) {
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
  if (longest > kLongestOperation.picoseconds() || total > kMaxImportedTime) {
    throw ConfigError(fmt::format(
        "{}: expected operations of at most 9 hours each and 50 days in all, as they are scaled, "
        "found {:.0f} s and {:.0f} s",
        to_string(workload.format), static_cast<double>(longest) / 1e12,
        static_cast<double>(total) / 1e12));
  }
}

}  // namespace

GraphedRun run_imported(const Cluster& cluster, const ImportedWorkload& workload,
                        const StepTables& tables, const GraphRunOptions& options) {
  check_times(workload, options);
  if (tables.shares_network) {
    check_shared(workload.graph);
  }
  return GraphOnCluster(cluster, tables).run(workload.graph, options, to_string(workload.format));
}

}  // namespace trainyard
