// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a collective sit, and in which order a channel visits them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trainyard {

// How channels visit the ranks of one node: channel c in the order [c] of local numbers. It enters
// the node at the first and leaves it at the last.
using LocalOrders = std::vector<std::vector<int>>;

// Ranks are numbered node by node. Nodes of one kind have the same number of ranks and are visited
// alike, so many equal nodes cost a number each.
struct RankLayout {
  std::vector<LocalOrders> kinds;         // Each with the same number of channels, at least one.
  std::vector<std::uint32_t> node_kinds;  // By node: index into kinds.
  // Odd nodes are visited in the reverse order, so that a ring leaves and enters every pair of
  // equal neighbours through the same local rank, that is, on the same rail. Where the number of
  // nodes is odd, the last hop changes rails.
  bool alternate = false;
  // Trees lead through the ranks of a single node as a chain, as they do where there are several
  // nodes: for meshes, in which not every two GPUs are joined but neighbours in the order are.
  bool chain_in_single_node = false;

  [[nodiscard]] int nodes() const { return static_cast<int>(node_kinds.size()); }
  [[nodiscard]] int channels() const { return static_cast<int>(kinds.front().size()); }
  // Counts node by node.
  [[nodiscard]] int ranks() const;
  // Return the most and the least over all nodes.
  [[nodiscard]] int max_ranks_per_node() const;
  [[nodiscard]] int min_ranks_per_node() const;
  // Local ranks of a node in the order of a channel, not reversed.
  [[nodiscard]] const std::vector<int>& local_order(int node, int channel) const {
    return kinds[node_kinds[static_cast<std::size_t>(node)]][static_cast<std::size_t>(channel)];
  }
  // Returns the first rank of each node and, at the end, the number of ranks.
  [[nodiscard]] std::vector<std::uint32_t> first_ranks() const;
  // All ranks in the order in which the ring of this channel visits them.
  [[nodiscard]] std::vector<int> ring_order(int channel) const;
};

// Nodes of one kind.
[[nodiscard]] RankLayout even_layout(int nodes, LocalOrders orders);
// All ranks in one row, in their natural order, on each channel.
[[nodiscard]] RankLayout flat_layout(int ranks, int channels);

// Directed Hamiltonian cycles over `lanes[a][b]` parallel links from a to b, no link used twice; as
// many as a bounded search finds, which for the DGX-1 cube mesh is all six. Each starts at 0. Empty
// if there is no cycle.
[[nodiscard]] std::vector<std::vector<int>> disjoint_rings(
    const std::vector<std::vector<int>>& lanes);

}  // namespace trainyard
