// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor_machine.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "topology/routing/routing.h"

namespace trainyard {
namespace {

Cluster rebuilt(const Cluster& cluster, const LinkChange& link,
                const std::function<void(ServerTraits&)>& traits) {
  const Topology& topology = cluster.topology;
  TopologyBuilder builder;
  for (std::uint32_t server = 0; server < topology.server_count(); ++server) {
    ServerTraits of = topology.server(ServerId(server));
    traits(of);
    builder.add_server(of);
  }
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    builder.add_node(topology.node(NodeId(node)));
  }
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    if (const std::optional<Link> left = link(topology.link(LinkId(index)))) {
      builder.add_link(left->source, left->target, left->spec);
    }
  }
  builder.set_parts(topology.parts());
  Cluster changed = cluster;
  changed.topology = std::move(builder).build();
  return changed;
}

LinkSpec with_share(LinkSpec spec, double share) {
  spec.bandwidth = spec.bandwidth.scaled(share);
  return spec;
}

// A link of one lane keeps it: then its rate alone tells.
LinkSpec with_half(LinkSpec spec) {
  const int lanes = std::max(1, spec.lanes / 2);
  spec = with_share(spec, spec.lanes > 1 ? static_cast<double>(lanes) / spec.lanes : 0.5);
  spec.lanes = lanes;
  return spec;
}

// The CPU that a device reaches by the fewest links of PCIe.
std::optional<NodeId> cpu_of(const Topology& topology, NodeId device) {
  std::vector<NodeId> seen{device};
  for (std::size_t at = 0; at < seen.size(); ++at) {
    if (topology.node(seen[at]).kind == NodeKind::Cpu) {
      return seen[at];
    }
    for (const LinkId id : topology.links_from(seen[at])) {
      const Link& link = topology.link(id);
      const NodeKind kind = topology.node(link.target).kind;
      const bool is_up =
          kind == NodeKind::PcieSwitch || kind == NodeKind::RootComplex || kind == NodeKind::Cpu;
      if (is_up && std::ranges::find(seen, link.target) == seen.end()) {
        seen.push_back(link.target);
      }
    }
  }
  return std::nullopt;
}

bool is_between_switches(const Topology& topology, const Link& link) {
  return topology.node(link.source).kind == NodeKind::Switch &&
         topology.node(link.target).kind == NodeKind::Switch;
}

}  // namespace

Cluster with_links(const Cluster& cluster, const LinkChange& change) {
  return rebuilt(cluster, change, [](ServerTraits&) {});
}

Cluster with_traits(const Cluster& cluster, const std::function<void(ServerTraits&)>& change) {
  return rebuilt(
      cluster, [](const Link& link) { return std::optional(link); }, change);
}

std::optional<NodeId> nic_of_rank(const Cluster& cluster, std::size_t rank) {
  const Routing routing(cluster.topology, cluster.routing);
  const std::vector<NodeId> nics = routing.nics(cluster.gpus.at(rank));
  if (nics.empty() || cluster.topology.node(nics.front()).kind != NodeKind::Nic) {
    return std::nullopt;
  }
  return nics.front();
}

std::vector<NodeId> nics_of_rail(const Cluster& cluster, std::size_t rank) {
  std::size_t place = rank;  // Among the GPUs of its server.
  for (const int gpus : cluster.server_gpus) {
    if (place < static_cast<std::size_t>(gpus)) {
      break;
    }
    place -= static_cast<std::size_t>(gpus);
  }
  std::vector<NodeId> nics;
  std::size_t first = 0;
  for (const int gpus : cluster.server_gpus) {
    if (place < static_cast<std::size_t>(gpus)) {
      if (const auto nic = nic_of_rank(cluster, first + place)) {
        nics.push_back(*nic);
      }
    }
    first += static_cast<std::size_t>(gpus);
  }
  return nics;
}

Cluster without_nodes(const Cluster& cluster, const std::vector<NodeId>& nodes) {
  return with_links(cluster, [&](const Link& link) -> std::optional<Link> {
    const bool is_gone = std::ranges::find(nodes, link.source) != nodes.end() ||
                         std::ranges::find(nodes, link.target) != nodes.end();
    return is_gone ? std::nullopt : std::optional(link);
  });
}

Cluster with_half_lanes(const Cluster& cluster, NodeId node, LinkKind kind) {
  return with_links(cluster, [&](Link link) {
    if (link.spec.kind == kind && (link.source == node || link.target == node)) {
      link.spec = with_half(link.spec);
    }
    return std::optional(link);
  });
}

Cluster with_slower_pcie(const Cluster& cluster) {
  return with_links(cluster, [](Link link) {
    if (link.spec.kind == LinkKind::Pcie) {
      link.spec = with_half(link.spec);
    }
    return std::optional(link);
  });
}

std::optional<Cluster> with_nic_at_other_cpu(const Cluster& cluster, NodeId nic) {
  const Topology& topology = cluster.topology;
  const std::optional<NodeId> own = cpu_of(topology, nic);
  std::optional<NodeId> other;
  for (std::uint32_t id = 0; id < topology.node_count() && own; ++id) {
    const Node& node = topology.node(NodeId(id));
    if (node.kind == NodeKind::Cpu && node.server == topology.node(nic).server &&
        NodeId(id) != *own) {
      other = NodeId(id);  // The last one.
    }
  }
  if (!other) {
    return std::nullopt;
  }
  return with_links(cluster, [&](Link link) {
    if (link.spec.kind == LinkKind::Pcie && link.source == nic) {
      link.target = *other;
    } else if (link.spec.kind == LinkKind::Pcie && link.target == nic) {
      link.source = *other;
    }
    return std::optional(link);
  });
}

Cluster with_slower_fabric(const Cluster& cluster, double share) {
  return with_links(cluster, [&](Link link) {
    if (is_between_switches(cluster.topology, link)) {
      link.spec = with_share(link.spec, share);
    }
    return std::optional(link);
  });
}

bool has_links_between_switches(const Cluster& cluster) {
  for (std::uint32_t id = 0; id < cluster.topology.link_count(); ++id) {
    if (is_between_switches(cluster.topology, cluster.topology.link(LinkId(id)))) {
      return true;
    }
  }
  return false;
}

Cluster without_peer_access(const Cluster& cluster) {
  const Cluster staged =
      with_traits(cluster, [](ServerTraits& traits) { traits.peer_access = Distance::None; });
  return with_links(staged, [](const Link& link) {
    const LinkKind kind = link.spec.kind;
    const bool joins_gpus = kind == LinkKind::NvLink || kind == LinkKind::Xgmi;
    return joins_gpus ? std::nullopt : std::optional(link);
  });
}

}  // namespace trainyard
