// SPDX-License-Identifier: Apache-2.0
// The double binary tree in which NCCL joins nodes (NVIDIA/nccl, src/graph/trees.cc: ncclGetBtree,
// ncclGetDtree; Sanders, Speck, Traeff, "Two-Tree Algorithms for Full Bandwidth Broadcast,
// Reduction and Scan", Parallel Computing 35, 2009).
#pragma once

#include <array>
#include <optional>

namespace trainyard::nccl {

struct TreePlace {
  std::optional<int> parent = {};
  // Place among the parent's children: index into `children` there.
  int child_index = 0;
  std::array<std::optional<int>, 2> children = {};
};

// Returns the place of `position` of 0 .. count - 1 in one binary tree whose inner places are the
// even ones: with b the lowest set bit of p, the parent of p is p with that bit cleared and the
// next one set, or only cleared where there is no such place; the children are p - b/2 and p + b/2,
// the second one nearer where there is none. Place 0 is the root and has one child, its second.
[[nodiscard]] TreePlace binary_tree(int count, int position);

// The places of `position` in both trees. The second is the first one mirrored for an even count,
// shifted by one for an odd one, so that a place that forwards in one is a leaf in the other (of an
// odd count all but one place).
struct DoubleTreePlace {
  std::array<TreePlace, 2> trees = {};
};
[[nodiscard]] DoubleTreePlace double_tree(int count, int position);

}  // namespace trainyard::nccl
