// SPDX-License-Identifier: Apache-2.0
// Copies of a cluster with something broken, for what-ifs: links lost, slower or elsewhere.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/ids.h"
#include "topology/cluster/cluster.h"
#include "topology/graph/topology.h"

namespace trainyard {

// The same nodes, with these links instead; a link of which `change` gives nothing is gone.
using LinkChange = std::function<std::optional<Link>(const Link&)>;
[[nodiscard]] Cluster with_links(const Cluster& cluster, const LinkChange& change);
// Changes what the software of every server allows.
[[nodiscard]] Cluster with_traits(const Cluster& cluster,
                                  const std::function<void(ServerTraits&)>& change);

// The NIC that a rank uses first for the fabric; none where it has none, or its own links there.
[[nodiscard]] std::optional<NodeId> nic_of_rank(const Cluster& cluster, std::size_t rank);
// Returns the NICs that stand where the NIC of `rank` does, one for each server with that many GPUs
// in use.
[[nodiscard]] std::vector<NodeId> nics_of_rail(const Cluster& cluster, std::size_t rank);

// All links of these nodes are gone.
[[nodiscard]] Cluster without_nodes(const Cluster& cluster, const std::vector<NodeId>& nodes);
// Links of `kind` at this node have half of their lanes.
[[nodiscard]] Cluster with_half_lanes(const Cluster& cluster, NodeId node, LinkKind kind);
// PCIe of every server at half the rate: one generation lower.
[[nodiscard]] Cluster with_slower_pcie(const Cluster& cluster);
// The NIC hangs off a CPU of its server that it did not belong to; nothing with one CPU.
[[nodiscard]] std::optional<Cluster> with_nic_at_other_cpu(const Cluster& cluster, NodeId nic);
// Links between switches of the fabric have this share of their rate.
[[nodiscard]] Cluster with_slower_fabric(const Cluster& cluster, double share);
[[nodiscard]] bool has_links_between_switches(const Cluster& cluster);
// GPUs reach each other through host memory only.
[[nodiscard]] Cluster without_peer_access(const Cluster& cluster);

}  // namespace trainyard
