// SPDX-License-Identifier: Apache-2.0
// Describes what a router may know of a fabric beside its graph.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/ids.h"

namespace trainyard {

class FabricRouter;
class Topology;
struct RoutingOptions;
using MakeFabricRouter = std::unique_ptr<FabricRouter> (*)(const Topology& topology,
                                                           const RoutingOptions& options);

// The switches of a fabric are nodes first_switch, first_switch + 1, ...
struct FabricShape {
  // Null for the router of any graph, by fields of distances (topology/routing/fabric_router.h).
  MakeFabricRouter router = nullptr;
  NodeId first_switch{};
  std::uint32_t switches = 0;
  // Grid: how many switches in each dimension, of which the first varies fastest; which dimensions
  // close to a ring; whether all switches that differ in one coordinate only are joined (HyperX)
  // instead of neighbours.
  std::vector<int> dimensions = {};
  std::vector<bool> wraps = {};
  bool joins_all = false;
  // Switches of one group, where they form equal groups that follow one another.
  std::uint32_t group_size = 0;
  // Dragonfly+: the first switches of a group only join the others of the group. Zero: all are
  // joined.
  std::uint32_t group_leaves = 0;
  // Virtual channels (priorities with buffers of their own) that routes may use.
  int virtual_channels = 1;

  // Whether switches have coordinates: torus, mesh, HyperX.
  [[nodiscard]] bool is_grid() const { return !dimensions.empty(); }
};

}  // namespace trainyard
