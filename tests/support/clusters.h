// SPDX-License-Identifier: Apache-2.0
// Clusters from a line of text: equal servers, each with one GPU, and NICs or a fabric on the GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/shipped.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/fabric_router.h"
#include "topology/routing/layer.h"

namespace trainyard {

// `fabric` is what stands between the braces of the key.
inline Cluster cluster_of(int nodes, int nics, const std::string& fabric) {
  ConfigDocument document = ConfigDocument::parse(
      "name: test\nsource: a test\nnodes: " + std::to_string(nodes) +
          "\nserver: {template: pcie, gpu: L40S, gpus: 1, nic: ConnectX-7, nics: " +
          std::to_string(nics) + "}\nfabric: {" + fabric + "}\n",
      "my.yaml");
  return build_cluster(document, shipped_catalogue(), {});
}

// The same without the links that `is_missing` names. Nodes keep their ids, links do not.
template <typename IsMissing>
Topology without_links(const Topology& topology, const IsMissing& is_missing) {
  TopologyBuilder builder;
  for (std::uint32_t server = 0; server < topology.server_count(); ++server) {
    (void)builder.add_server(topology.server(ServerId(server)));
  }
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    (void)builder.add_node(topology.node(NodeId(node)));
  }
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    if (!is_missing(LinkId(index))) {
      (void)builder.add_link(link.source, link.target, link.spec);
    }
  }
  return std::move(builder).build();
}

// Whether each link begins where the one before ended, from source to target.
inline bool is_walk(const Topology& topology, NodeId source, NodeId target,
                    const std::vector<LinkId>& path) {
  NodeId at = source;
  for (const LinkId link : path) {
    if (topology.link(link).source != at) {
      return false;
    }
    at = topology.link(link).target;
  }
  return at == target;
}

// Whether no node is passed twice.
inline bool is_simple(const Topology& topology, const std::vector<LinkId>& path) {
  std::vector<NodeId> passed;
  for (const LinkId link : path) {
    passed.push_back(topology.link(link).target);
  }
  std::sort(passed.begin(), passed.end());
  return std::adjacent_find(passed.begin(), passed.end()) == passed.end();
}

inline bool repeats_a_link(std::vector<LinkId> path) {
  std::sort(path.begin(), path.end());
  return std::adjacent_find(path.begin(), path.end()) != path.end();
}

// Links of the fabric between switches, each direction counted.
inline std::uint32_t trunk_count(const Topology& topology) {
  std::uint32_t count = 0;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    count += topology.node(link.source).kind == NodeKind::Switch &&
                     topology.node(link.target).kind == NodeKind::Switch
                 ? 1
                 : 0;
  }
  return count;
}

inline std::uint32_t switch_count(const Topology& topology) {
  std::uint32_t count = 0;
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    count += topology.node(NodeId(node)).kind == NodeKind::Switch ? 1 : 0;
  }
  return count;
}

// The route of one flow; empty if there is none.
inline std::vector<LinkId> fabric_route(FabricRouter& router, const RoutingOptions& options,
                                        NodeId source, NodeId target, std::uint32_t label) {
  const auto place = std::ranges::find(router.endpoints(), target) - router.endpoints().begin();
  const Chooser chooser(options, source, target, label, static_cast<std::uint32_t>(place));
  std::vector<LinkId> path;
  return router.append_route(source, target, chooser, path) ? path : std::vector<LinkId>();
}

}  // namespace trainyard
