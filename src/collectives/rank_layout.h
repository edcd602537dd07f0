// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a collective sit, and in which order a channel visits them.
#pragma once

#include <vector>

namespace trainyard {

// nodes * ranks_per_node ranks, node by node. Channel c visits the ranks of a node in the order
// local_orders[c]: it enters at the first and leaves at the last.
struct RankLayout {
  int nodes = 1;
  int ranks_per_node = 1;
  std::vector<std::vector<int>> local_orders;
  // Odd nodes are visited in the reverse order, so that a ring leaves and enters every pair of
  // neighbours through the same local rank, that is, on the same rail. Where the number of nodes is
  // odd, the last hop changes rails.
  bool alternate = false;
  // Trees lead through the ranks of a single node as a chain, as they do where there are several
  // nodes: for meshes, in which not every two GPUs are joined but neighbours in the order are.
  bool chain_in_single_node = false;

  [[nodiscard]] int ranks() const { return nodes * ranks_per_node; }
  [[nodiscard]] int channels() const { return static_cast<int>(local_orders.size()); }
  // All ranks in the order in which the ring of this channel visits them.
  [[nodiscard]] std::vector<int> ring_order(int channel) const;
};

// All ranks in one row, in their natural order, on each channel.
[[nodiscard]] RankLayout flat_layout(int ranks, int channels);

// Directed Hamiltonian cycles over `lanes[a][b]` parallel links from a to b, no link used twice; as
// many as a bounded search finds, which for the DGX-1 cube mesh is all six. Each starts at 0. Empty
// if there is no cycle.
[[nodiscard]] std::vector<std::vector<int>> disjoint_rings(
    const std::vector<std::vector<int>>& lanes);

}  // namespace trainyard
