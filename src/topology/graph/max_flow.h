// SPDX-License-Identifier: Apache-2.0
// Maximum flow between many sources and many sinks, for the bandwidth of cuts.
//
// The theorem of Ford and Fulkerson says that the most that flows is the least that a cut lets
// through. Fabrics are so regular that most vertices are alike, so alike vertices are merged first:
// a partition of the vertices is equitable if all members of a class have the same supply, the same
// demand, and for each class the same capacity to it and from it. Merging every class into one
// vertex, with capacities summed, then changes nothing: a flow of the whole gives one of the merged
// problem by summing, and a flow f between merged classes A and B comes apart into f c(e) / C(A, B)
// on each edge e of capacity c(e), with C(A, B) the sum of them, which treats all members of a
// class alike and so conserves flow at each. (The same holds for any linear program: Grohe,
// Kersting, Mladenov, Selman, Dimension reduction via colour refinement, 2014.)
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

struct FlowEdge {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::int64_t capacity = 0;
};

// Supply and demand of each vertex: the most that enters there, and the most that leaves there. All
// capacities together must be below 2^62.
struct FlowProblem {
  std::vector<std::int64_t> supply;
  std::vector<std::int64_t> demand;
  std::vector<FlowEdge> edges;
};

[[nodiscard]] std::int64_t max_flow(const FlowProblem& problem);

// The two steps of it. The coarsest equitable partition found by colour refinement, merged; the
// problem as it is if that takes too many rounds.
[[nodiscard]] FlowProblem merge_alike(const FlowProblem& problem);
[[nodiscard]] std::int64_t max_flow_unmerged(const FlowProblem& problem);

}  // namespace trainyard
