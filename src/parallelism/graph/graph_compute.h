// SPDX-License-Identifier: Apache-2.0
// Computes how long the computation of an operation graph takes on ranks that are not equally fast.
#pragma once

#include <cstdint>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/operators/step_parts.h"

namespace trainyard {

struct GraphRunOptions {
  // Factors by rank of the graph: all computation takes this over 10^6 times as long; empty: 10^6.
  std::vector<std::int64_t> compute_ppm = {};
  // Factors by operation, on top of that: the time of computation over 10^6; empty: 10^6.
  std::vector<std::int64_t> operation_ppm = {};
};

// The operation's computation on its rank: its parts, each scaled.
[[nodiscard]] StepParts compute_parts(const OperationGraph& graph, OperationId id,
                                      const GraphRunOptions& options);

}  // namespace trainyard
