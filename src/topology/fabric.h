// SPDX-License-Identifier: Apache-2.0
// The network between servers: its size from the switches' port counts, its nodes and links.
//
// Three templates. `single-switch`: every NIC on one switch. `clos`: whole servers below each leaf,
// every leaf joined to every spine. `rail-optimised`: NIC j of each server below leaf j of its
// group of servers, leaves and spines as before. With P ports of a leaf and oversubscription s
// (ports down over ports up), a leaf has at most P s / (1 + s) ports down. It gets as many ports up
// as those in use need, and there are as few spines as have the ports for them and let every leaf
// spread its uplinks evenly. This gives the counts of NVIDIA's SuperPOD reference architectures
// (docs/clusters.md).
#pragma once

#include <cstdint>
#include <vector>

#include "hw/catalogue.h"
#include "sim/config.h"
#include "topology/parts.h"
#include "topology/routing.h"
#include "topology/server.h"
#include "topology/topology.h"

namespace trainyard {

enum class FabricTemplate : std::uint8_t { SingleSwitch, Clos, RailOptimised };

struct FabricSpec {
  FabricTemplate layout = FabricTemplate::SingleSwitch;
  int leaves = 0;
  int servers_per_leaf = 0;
  int uplinks = 0;  // Of one leaf; a multiple of `spines`.
  int spines = 0;   // Zero if one leaf is enough.
  LinkSpec host_link;
  LinkSpec spine_link;
  SimTime leaf_latency;
  SimTime spine_latency;
  RoutingOptions routing;
};

// `nodes` is the value that gave the number of servers: errors of size point at it.
[[nodiscard]] FabricSpec read_fabric(const ConfigNode& node, const ConfigNode& nodes,
                                     const ServerSpec& server, const Catalogue& catalogue,
                                     EstimateLog& estimates);

// `servers` must all have the same number of NICs, at least one.
void add_fabric(TopologyBuilder& builder, const FabricSpec& spec,
                const std::vector<ServerNodes>& servers);

}  // namespace trainyard
