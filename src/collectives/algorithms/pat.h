// SPDX-License-Identifier: Apache-2.0
// PAT, parallel aggregated trees: the order in which a rank works in NCCL's all_gather and
// reduce_scatter of that name (src/include/collectives.h, PatRSAlgorithm and PatAGAlgorithm).
//
// Every rank is the root of a binomial tree, and all trees are walked at once. Of the tree of rank
// t, rank r has the offset s = t - r (counted around); the lowest bit set in s is its dimension. In
// reduce_scatter r adds to its own block what comes from the children r - 2^d, of offsets s + 2^d <
// N with d below the dimension of s, and sends the sum to its parent r + 2^dimension; the child of
// dimension 0 comes last. all_gather is the same backwards in time and direction.
//
// The order of the offsets is the same for all ranks. It keeps few sums open at a time:
// `aggregation` trees (a power of two) are worked on together, each over D = P / aggregation
// offsets, P the least power of two that is not below N; first down each of them (the linear part),
// then over their tops (the logarithmic part).
#pragma once

#include <cstdint>
#include <vector>

namespace trainyard {

// The work of a rank of reduce_scatter on the sum for offset `parent`.
struct PatEvent {
  // The child whose contribution is received on dimension ffs(child) and added; of a leaf (which
  // has no children) its own offset. A child of N or more does not exist: nothing is received.
  std::uint32_t child = 0;
  std::uint32_t parent = 0;
  // A leaf's own block is sent as it is: child and parent are equal.
  bool is_leaf = false;
  // The sum is complete and goes to the rank 2^dimension ahead, unless it is for the rank itself.
  bool completes = false;
  friend bool operator==(const PatEvent&, const PatEvent&) = default;
};

// The dimension of an offset above zero.
[[nodiscard]] std::uint32_t pat_dimension(std::uint32_t offset);

// The greatest aggregation for so many ranks: half of P, at least 1.
[[nodiscard]] std::uint32_t max_pat_aggregation(std::uint32_t ranks);

// The events of reduce_scatter in their order, those without effect left out. `aggregation` is a
// power of two up to max_pat_aggregation. all_gather goes through them backwards: for a parent
// above zero the block arrives when its event that completes comes, and then goes to the child.
[[nodiscard]] std::vector<PatEvent> pat_events(std::uint32_t ranks, std::uint32_t aggregation);

}  // namespace trainyard
