// SPDX-License-Identifier: Apache-2.0
// Derives facts about a path between two devices from its links: latency, rate, and how far apart
// in a server its ends are.
//
// Distances. Sys: it takes a link between sockets. Phb: it passes a root complex or CPU. Pxb: two
// PCIe switches or more. Pix: one. None: nothing of that kind, as on NVLink, xGMI and where the two
// are one. A CPU that is entered or left by C2C is no host bridge on the way: the two chips are one
// module, and NCCL takes such a GPU as near to the NICs of its CPU (PATH_P2C in src/graph/topo.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/ids.h"
#include "topology/graph/topology.h"

namespace trainyard {

[[nodiscard]] Distance path_distance(const Topology& topology, std::span<const LinkId> path);

// Returns whether the path passes through host memory instead of ending or beginning there.
[[nodiscard]] bool is_staged(const Topology& topology, std::span<const LinkId> path);

// Sum of link latencies and of the latencies of the nodes in between, and of the last node if it is
// a switch: what a switch takes for itself passes through it as what it forwards does, and what it
// sends of its own has.
[[nodiscard]] SimTime path_latency(const Topology& topology, const std::vector<LinkId>& path);
// Returns the rate of a long transfer alone on the path, which must not be empty: the least
// bandwidth of its links, or of its staging.
[[nodiscard]] Bandwidth path_bandwidth(const Topology& topology, const std::vector<LinkId>& path);
// Returns the rate of one pair of devices over a path that is staged in host memory:
// ServerTraits::staging_share of the slowest link inside the servers. Nothing where nothing is
// staged.
[[nodiscard]] std::optional<Bandwidth> staging_bandwidth(const Topology& topology,
                                                         const std::vector<LinkId>& path);

}  // namespace trainyard
