// SPDX-License-Identifier: Apache-2.0
// Computation that does not take equally long every time and on every GPU: ranks that are slower
// than others, and operations that are longer than usual.
//
// Both are one-sided, as noise can only take time away, and exponential: the factor of a rank, or
// of an operation, is 1 + share x E, with E of mean 1. Draws depend on the seed, the rank and the
// position of the operation on it alone, so that equal ranks of larger graphs see the same.
#pragma once

#include <cstdint>

#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/operation_graph.h"

namespace trainyard {

struct ComputeJitter {
  std::int64_t rank_ppm = 0;       // Mean share by which ranks are slower, all step long.
  std::int64_t operation_ppm = 0;  // Mean share by which single operations are longer.
  std::uint64_t seed = 0;

  [[nodiscard]] bool has_any() const { return rank_ppm > 0 || operation_ppm > 0; }
};

// `options` with the jitter on top of what is in it. For a graph that is not folded: ranks that
// stand for others would make all of them slow at once.
[[nodiscard]] GraphRunOptions with_jitter(GraphRunOptions options, const ComputeJitter& jitter,
                                          const OperationGraph& graph);

}  // namespace trainyard
