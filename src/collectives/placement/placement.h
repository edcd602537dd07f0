// SPDX-License-Identifier: Apache-2.0
// Which rings and trees the plain runtime lays over a cluster.
//
// - GPUs joined by direct links (an NVLink mesh without a switch): one channel for each of the
//   link-disjoint rings that the mesh has.
// - Otherwise the natural order of the GPUs, which an NVSwitch or a PCIe tree serves as well as any
//   other, and two channels, so that both trees of the double tree are used.
// - Several nodes: as many channels as give every NIC and every ring the same number; they enter
//   and leave a node at GPUs next to different NICs, and equal neighbours are joined on one rail.
//   Nodes may differ; each kind has rings and cuts of its own (docs/models/collectives.md).
// - GPUs that hang off the switches of a grid, without NICs: rings from neighbour to neighbour, one
//   channel each way.
// - Algorithms of a grid: the dimensions of rank_grid.h; on a grid fabric a channel for each
//   dimension and direction.
// - Algorithms of several NVSwitches: the ranks of an NVSwitch are a node, and two channels use
//   both trees.
// The row of an algorithm (algorithm.h) says which of these it is. Others have as many channels as
// a GPU has NICs, since a message takes one. Those that add up in the network also get switches as
// relays (aggregation.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/rank_layout.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct Placement {
  ScheduleOptions options;    // For make_schedule(), with root and pieces of whoever runs it.
  std::vector<NodeId> nodes;  // Node of each rank, then of each relay.
  // Remarks for the user, such as that a mesh has no ring.
  std::vector<std::string> remarks;
};

// `channels` overrides the number of channels. Throws ConfigError where placement_error() has one.
[[nodiscard]] Placement place(const Cluster& cluster, const Routing& routing, Algorithm algorithm,
                              std::optional<int> channels);

}  // namespace trainyard
