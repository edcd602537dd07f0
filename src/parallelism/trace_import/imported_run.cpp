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

// A number of millionths of kBubbleUnit that is longer than any operation may be.
constexpr std::int64_t kLongestBubble = std::int64_t{1} << 62;

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

// Sets how long the bubbles are: a share of what the layers took in a run without them.
void fill_bubbles(const PipelineBubble& bubble, const OperationGraph& graph, SimTime layers,
                  GraphRunOptions& options) {
  constexpr std::int64_t kWhole = 1'000'000;
  const __int128 time = static_cast<__int128>(layers.picoseconds()) * bubble.numerator * kWhole /
                        bubble.denominator / kBubbleUnit.picoseconds();
  for (const OperationId id : bubble.operations) {
    const auto rank = static_cast<std::size_t>(graph.rank_of(id));
    const __int128 ppm = options.compute_ppm.empty() ? kWhole : options.compute_ppm[rank];
    options.operation_ppm[id.value()] = static_cast<std::int64_t>(
        std::min<__int128>((time * kWhole + ppm - 1) / ppm, kLongestBubble));
  }
}

}  // namespace

GraphedRun run_imported(const Cluster& cluster, const ImportedWorkload& workload,
                        const StepTables& tables, const GraphRunOptions& options) {
  check_times(workload, options);
  if (tables.shares_network) {
    check_shared(workload.graph);
  }
  GraphOnCluster on_cluster(cluster, tables);
  const auto run = [&](const GraphRunOptions& with) {
    return on_cluster.run(workload.graph, with, to_string(workload.format));
  };
  if (!workload.bubble) {
    return run(options);
  }
  GraphRunOptions filled = options;
  filled.operation_ppm.resize(workload.graph.operations().size(), 1'000'000);
  for (const OperationId id : workload.bubble->operations) {
    filled.operation_ppm[id.value()] = 0;
  }
  const GraphedRun empty = run(filled);
  const StepParts& parts = empty.ranks[empty.busiest];
  fill_bubbles(*workload.bubble, workload.graph,
               parts[StepPart::Linear] + parts[StepPart::Recompute] + parts[StepPart::Tensor] +
                   parts[StepPart::Expert],
               filled);
  check_times(workload, filled);
  return run(filled);
}

}  // namespace trainyard
