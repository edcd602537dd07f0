// SPDX-License-Identifier: Apache-2.0
// Switches in tiers: their number from the port counts, their nodes and links.
//
// Three templates. `single-switch`: every NIC on one switch. `clos`: whole servers below each leaf,
// every leaf joined to every spine. `rail-optimised`: NIC j of each server below leaf j of its
// group of servers, leaves and spines as before. With P ports of a leaf and oversubscription s
// (ports down over ports up), a leaf has at most P s / (1 + s) ports down. It gets as many ports up
// as those in use need, and there are as few spines as have the ports for them and let every leaf
// spread its uplinks evenly. This gives the counts of NVIDIA's SuperPOD reference architectures
// (docs/clusters.md).
#pragma once

#include <memory>

#include "topology/fabric.h"

namespace trainyard {

struct ClosSpec {
  bool rails = false;
  int leaves = 0;
  int servers_per_leaf = 0;
  int uplinks = 0;  // Of one leaf; a multiple of `spines`.
  int spines = 0;   // Zero if one leaf is enough.
  LinkSpec host_link;
  LinkSpec spine_link;
  SwitchSpec leaf;
  SwitchSpec spine;
};

enum class ClosTemplate : std::uint8_t { SingleSwitch, Clos, RailOptimised };

[[nodiscard]] ClosSpec read_clos_spec(const FabricContext& context, ClosTemplate layout);

[[nodiscard]] std::unique_ptr<Fabric> read_single_switch(const FabricContext& context);
[[nodiscard]] std::unique_ptr<Fabric> read_clos(const FabricContext& context);
[[nodiscard]] std::unique_ptr<Fabric> read_rail_optimised(const FabricContext& context);

}  // namespace trainyard
