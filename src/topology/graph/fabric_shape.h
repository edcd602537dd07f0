// SPDX-License-Identifier: Apache-2.0
// Describes what a router may know of a fabric beside its graph.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ids.h"

namespace trainyard {

enum class FabricKind : std::uint8_t {
  General,    // Any graph: routed by fields of distances.
  Clos,       // Switches in tiers, endpoints below: up, then down.
  Grid,       // Switches at coordinates: torus, mesh, HyperX.
  Dragonfly,  // Groups of switches, joined by global links.
};

// The switches of a fabric are nodes first_switch, first_switch + 1, ...
struct FabricShape {
  FabricKind kind = FabricKind::General;
  NodeId first_switch{};
  std::uint32_t switches = 0;
  // Grid: how many switches in each dimension, of which the first varies fastest; which dimensions
  // close to a ring; whether all switches that differ in one coordinate only are joined (HyperX)
  // instead of neighbours.
  std::vector<int> dimensions = {};
  std::vector<bool> wraps = {};
  bool joins_all = false;
  // Dragonfly: switches of one group, which follow one another.
  std::uint32_t group_size = 0;
  // The first of them that only join the others of the group (dragonfly+); zero: all are joined.
  std::uint32_t group_leaves = 0;
  // Virtual channels (priorities with buffers of their own) that routes may use.
  int virtual_channels = 1;
};

}  // namespace trainyard
