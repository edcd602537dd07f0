// SPDX-License-Identifier: Apache-2.0
// The fat-tree of the packet engine's speed runs, built without files.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "topology/graph/topology.h"

namespace trainyard {

struct SpeedFabric {
  Topology topology;
  std::vector<NodeId> hosts;
};

// Al-Fares, Loukissas, Vahdat, SIGCOMM 2008: radix pods of radix/2 edge and radix/2 aggregation
// switches, radix^2/4 core switches, radix^3/4 hosts. 100 Gb/s and 1 us a link.
inline SpeedFabric packet_fat_tree(int radix) {
  const LinkSpec link{
      .kind = LinkKind::Network, .bandwidth = gigabits_per_second(100), .latency = microseconds(1)};
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const int half = radix / 2;
  std::vector<NodeId> cores;
  for (int core = 0; core < half * half; ++core) {
    cores.push_back(
        builder.add_node({.kind = NodeKind::Switch, .name = fmt::format("core {}", core)}));
  }
  for (int pod = 0; pod < radix; ++pod) {
    std::vector<NodeId> aggregations;
    for (int i = 0; i < half; ++i) {
      aggregations.push_back(builder.add_node(
          {.kind = NodeKind::Switch, .name = fmt::format("aggregation {} of pod {}", i, pod)}));
      for (int core = 0; core < half; ++core) {
        builder.add_duplex_link(aggregations.back(),
                                cores[static_cast<std::size_t>(i * half + core)], link);
      }
    }
    for (int i = 0; i < half; ++i) {
      const NodeId edge = builder.add_node(
          {.kind = NodeKind::Switch, .name = fmt::format("edge {} of pod {}", i, pod)});
      for (const NodeId aggregation : aggregations) {
        builder.add_duplex_link(edge, aggregation, link);
      }
      for (int host = 0; host < half; ++host) {
        hosts.push_back(builder.add_node({.kind = NodeKind::Gpu,
                                          .name = fmt::format("host {}", hosts.size()),
                                          .latency = SimTime(),
                                          .server = builder.add_server()}));
        builder.add_duplex_link(hosts.back(), edge, link);
      }
    }
  }
  return {.topology = std::move(builder).build(), .hosts = hosts};
}

}  // namespace trainyard
