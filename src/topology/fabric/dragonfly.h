// SPDX-License-Identifier: Apache-2.0
// Groups of switches, every two groups joined by global links.
//
// `dragonfly`: the switches of a group are fully meshed, and each has endpoints and global links
// (Kim et al., Technology-driven, highly-scalable dragonfly topology, 2008). `dragonfly-plus`: leaf
// switches with the endpoints, each joined to all spines of its group, which have the global links
// (Shpiner et al., Dragonfly+: low cost topology for scaling datacenters, 2017).
//
// The global links of a pair come in bundles between one pair of switches. Group g lists its
// bundles to groups g + 1, g + 2, ... (modulo their number) and deals them to its switches in turn,
// so each has as many as any other, or one bundle less. 545 groups of 32 switches with one link a
// pair take 31 + 17 of 64 ports: the largest Slingshot system.
#pragma once

#include <memory>
#include <vector>

#include "topology/fabric/fabric.h"

namespace trainyard {

struct DragonflySpec : GroupLinks {
  bool has_spines = false;
  int groups = 1;
  int leaves = 1;  // With endpoints, of one group: all its switches unless has_spines.
  int spines = 0;
  int local_links = 1;  // Links between two switches of a group that are joined.
  int bundles = 1;      // Bundles between two groups.
  int bundle = 1;       // Links of one bundle.
  int endpoints_per_switch = 1;

  [[nodiscard]] int group_size() const { return leaves + spines; }
  // The switch, within group `from`, of one of its bundles to group `to`.
  [[nodiscard]] int gateway(int from, int to, int bundle_number) const;
};

void dragonfly_fields(Fields& fields, FabricKeys& keys, bool has_spines);

[[nodiscard]] std::unique_ptr<Fabric> read_dragonfly(const FabricContext& context, bool has_spines);

}  // namespace trainyard
