// SPDX-License-Identifier: Apache-2.0
// Workloads in files of other tools, as operation graphs (docs/inputs/imported-workloads.md).
//
// A reader takes everything in a file or says what it cannot take: ConfigError, one line, with the
// file, the line or node, and the field. What has no effect by a rule of the page is counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/lowering/graph_lowering.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/workload/imported_files.h"
#include "sim/units.h"

namespace trainyard {

// Returns the name of this part of the time where the operations come from such a file; empty: no
// time of a run is counted as it.
[[nodiscard]] std::string_view imported_part_name(ImportedFormat format, StepPart part);

// Computation that takes a share of the time of all other operations of its rank that hold it up:
// the time in which a stage of a pipeline has nothing to do. Known only after a run without it.
struct PipelineBubble {
  std::vector<OperationId> operations;  // One of each rank; their time is kBubbleUnit.
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;
};
inline constexpr SimTime kBubbleUnit = nanoseconds(100);

// How long a call took when it was recorded, with the wait for its last member.
struct RecordedCall {
  OperationId operation;
  SimTime time;
};

struct ImportedWorkload {
  ImportedFormat format = ImportedFormat::Goal;
  OperationGraph graph;
  // Kinds of entries with their numbers: "412 CPU operators that launch nothing".
  std::vector<std::string> left_out = {};
  std::vector<std::string> notes = {};  // Assumptions; one line each.
  std::optional<PipelineBubble> bubble = {};
  std::vector<RecordedCall> recorded_calls = {};  // Calls whose time is predicted here.
};

// The ranks that a workload runs on.
struct ImportedTarget {
  // Servers by GPU of the cluster; rank r is the GPU r.
  std::span<const int> server_of_gpu;
  // Folded: where a file says that all ranks do the same, one of them represents all.
  Folding folding = Folding::Folded;
  // Groups by name, of Chakra traces: beside those that the traces have.
  std::map<std::string, std::vector<int>> groups = {};
  // Calls of the ranks of profiles, for kernels that do not say theirs.
  std::vector<ImportedFile> execution_traces = {};

  [[nodiscard]] int gpus() const { return static_cast<int>(server_of_gpu.size()); }
};

// The graph of so many ranks, of which those that have a trace are present. The key is the rank.
template <typename Trace>
[[nodiscard]] OperationGraph graph_of_traced(int ranks, const std::map<int, Trace>& traces) {
  if (traces.size() == static_cast<std::size_t>(ranks)) {
    return OperationGraph(ranks);
  }
  std::vector<int> present;
  for (const auto& [rank, trace] : traces) {
    present.push_back(rank);
  }
  return {ranks, std::move(present)};
}

// The graph passed check().
[[nodiscard]] ImportedWorkload read_imported(const std::vector<ImportedFile>& files,
                                             ImportedFormat format, const ImportedTarget& target);

}  // namespace trainyard
