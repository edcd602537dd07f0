// SPDX-License-Identifier: Apache-2.0
// A signature holds all that may differ, with nodes numbered from the first of their server.
#include "topology/cluster/server_kinds.h"

#include <algorithm>
#include <map>

namespace trainyard {

ServerKinds::ServerKinds(const Cluster& cluster, const SwitchGraph& graph)
    : in_use_(cluster.topology.node_count(), false) {
  const Topology& topology = cluster.topology;
  for (const NodeId gpu : cluster.gpus) {
    in_use_[gpu.value()] = true;
  }
  std::vector<std::pair<std::uint32_t, NodeId>> nodes;
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    if (const auto server = topology.node(NodeId(index)).server) {
      nodes.emplace_back(server->value(), index);
    }
  }
  nodes_ = Lists<NodeId>(topology.server_count(), nodes);
  std::map<std::vector<std::int64_t>, std::size_t> known;
  for (std::uint32_t index = 0; index < topology.server_count(); ++index) {
    const ServerId server(index);
    const auto [place, is_new] =
        known.try_emplace(signature(cluster, graph, server), kinds_.size());
    if (is_new) {
      kinds_.push_back({.first = server});
    }
    kind_of_server_.push_back(place->second);
    AlikeServers& kind = kinds_[place->second];
    if (++kind.count == 2) {
      kind.second = server;
    }
    kind.last = is_new ? std::nullopt : std::optional(server);
  }
}

std::vector<NodeId> ServerKinds::gpus_of(ServerId server) const {
  std::vector<NodeId> gpus;
  for (const NodeId node : nodes_of(server)) {
    if (in_use_[node.value()]) {
      gpus.push_back(node);
    }
  }
  return gpus;
}

std::vector<std::int64_t> ServerKinds::signature(const Cluster& cluster, const SwitchGraph& graph,
                                                 ServerId server) const {
  constexpr std::int64_t kEnd = -1;
  const Topology& topology = cluster.topology;
  const ServerTraits& traits = topology.server(server);
  std::vector<std::int64_t> result = {static_cast<std::int64_t>(traits.peer_access),
                                      static_cast<std::int64_t>(traits.gpudirect),
                                      traits.pxn ? 1 : 0, traits.grouped_nics ? 1 : 0};
  const auto nodes = nodes_of(server);
  for (const NodeId id : nodes) {
    const Node& node = topology.node(id);
    result.insert(result.end(), {static_cast<std::int64_t>(node.kind), node.part, node.ports,
                                 node.latency.picoseconds(), in_use_[id.value()] ? 1 : 0});
    for (const LinkId link_id : topology.links_from(id)) {
      const Link& link = topology.link(link_id);
      const auto at = graph.index_of(link.target);
      const auto place = std::ranges::lower_bound(nodes, link.target);
      const bool is_inside = place != nodes.end() && *place == link.target;
      // Into the fabric: the component. Inside: the place. Elsewhere: the sort of node.
      const std::int64_t other = at          ? graph.component(*at)
                                 : is_inside ? place - nodes.begin()
                                             : topology.node(link.target).part;
      result.insert(result.end(),
                    {at ? 1 : (is_inside ? 2 : 3), other, static_cast<std::int64_t>(link.spec.kind),
                     link.spec.bandwidth.bits_per_second(), link.spec.latency.picoseconds(),
                     link.spec.lanes});
    }
    result.push_back(kEnd);
  }
  return result;
}

}  // namespace trainyard
