// SPDX-License-Identifier: Apache-2.0
// The grid that the ranks of a cluster form, for rings along its dimensions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/cluster/cluster.h"

namespace trainyard {

struct RankGrid {
  std::vector<int> dimensions;  // The first varies fastest with the rank.
  // The dimensions are links of a grid fabric; otherwise they are the ranks of a server and the
  // servers.
  bool is_fabric = false;
};

// On a fabric that is a grid, with GPUs that hang off its switches themselves: its dimensions
// (before them the GPUs of a switch, if several). On other clusters: ranks of a server x servers.
// Dimensions of length 1 are left out. Nothing, and `error` says why in a few words, if the
// ranks do not fill it.
[[nodiscard]] std::optional<RankGrid> rank_grid(const Cluster& cluster, std::string& error);

// The place in the grid of the switch that a GPU hangs off; nothing if it does not, or if it has
// better links than those of the fabric.
[[nodiscard]] std::optional<int> place_in_grid(const Topology& topology, const FabricShape& grid,
                                               NodeId gpu);

}  // namespace trainyard
