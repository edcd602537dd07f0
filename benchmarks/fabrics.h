// SPDX-License-Identifier: Apache-2.0
// The two fabrics that the speed runs use, built without files.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "topology/graph/topology.h"

namespace trainyard {

struct BenchmarkFabric {
  Topology topology;
  std::vector<NodeId> hosts;
};

// Hosts on one non-blocking switch, 400 Gb/s and 500 ns a link.
inline BenchmarkFabric single_switch(int hosts) {
  const LinkSpec link{.kind = LinkKind::Network,
                      .bandwidth = gigabits_per_second(400),
                      .latency = nanoseconds(500)};
  TopologyBuilder builder;
  const NodeId hub = builder.add_node({.kind = NodeKind::Switch, .name = "switch"});
  std::vector<NodeId> nodes;
  for (int host = 0; host < hosts; ++host) {
    nodes.push_back(builder.add_node({.kind = NodeKind::Gpu,
                                      .name = fmt::format("host {}", host),
                                      .latency = SimTime(),
                                      .server = builder.add_server()}));
    builder.add_duplex_link(nodes.back(), hub, link);
  }
  return {.topology = std::move(builder).build(), .hosts = nodes};
}

// radix hosts under each of radix leaves, all leaves joined to all of radix spines: a non-blocking
// two-level fat-tree of radix^2 hosts at 400 Gb/s.
inline BenchmarkFabric fat_tree(int radix) {
  const LinkSpec link{.kind = LinkKind::Network,
                      .bandwidth = gigabits_per_second(400),
                      .latency = nanoseconds(500)};
  TopologyBuilder builder;
  std::vector<NodeId> spines;
  for (int spine = 0; spine < radix; ++spine) {
    spines.push_back(
        builder.add_node({.kind = NodeKind::Switch, .name = fmt::format("spine {}", spine)}));
  }
  std::vector<NodeId> hosts;
  for (int leaf = 0; leaf < radix; ++leaf) {
    const NodeId node =
        builder.add_node({.kind = NodeKind::Switch, .name = fmt::format("leaf {}", leaf)});
    for (const NodeId spine : spines) {
      builder.add_duplex_link(node, spine, link);
    }
    for (int host = 0; host < radix; ++host) {
      hosts.push_back(builder.add_node({.kind = NodeKind::Gpu,
                                        .name = fmt::format("host {}", hosts.size()),
                                        .latency = SimTime(),
                                        .server = builder.add_server()}));
      builder.add_duplex_link(hosts.back(), node, link);
    }
  }
  return {.topology = std::move(builder).build(), .hosts = hosts};
}

}  // namespace trainyard
