// SPDX-License-Identifier: Apache-2.0
// Tiny topologies for tests: hosts that can communicate, and what lies between them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/random.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct TestFabric {
  Topology topology;
  std::vector<NodeId> hosts;
  std::vector<NodeId> switches = {};  // Of which relays are made: at least one if there are any.
};

[[nodiscard]] inline LinkSpec fabric_link(Bandwidth bandwidth, SimTime latency) {
  return {.kind = LinkKind::Network, .bandwidth = bandwidth, .latency = latency};
}

inline NodeId add_host(TopologyBuilder& builder, std::vector<NodeId>& hosts) {
  const ServerId server = builder.add_server();
  hosts.push_back(builder.add_node(
      {.kind = NodeKind::Gpu, .name = "host " + std::to_string(hosts.size()), .server = server}));
  return hosts.back();
}

inline NodeId add_switch(TopologyBuilder& builder, std::string name) {
  return builder.add_node({.kind = NodeKind::Switch, .name = std::move(name)});
}

// All hosts on one switch. A path is two of these links.
[[nodiscard]] inline TestFabric one_switch(int hosts, const LinkSpec& link) {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  const NodeId hub = add_switch(builder, "switch");
  for (int host = 0; host < hosts; ++host) {
    builder.add_duplex_link(add_host(builder, nodes), hub, link);
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(nodes), .switches = {hub}};
}

// The same with another rate for each host.
[[nodiscard]] inline TestFabric uneven_switch(const std::vector<LinkSpec>& links) {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  const NodeId hub = add_switch(builder, "switch");
  for (const LinkSpec& link : links) {
    builder.add_duplex_link(add_host(builder, nodes), hub, link);
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(nodes), .switches = {hub}};
}

// A row of switches joined by `trunks`, one host on each: trunks.size() + 1 hosts.
[[nodiscard]] inline TestFabric switch_row(const LinkSpec& host_link,
                                           const std::vector<LinkSpec>& trunks) {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  NodeId last = add_switch(builder, "switch 0");
  builder.add_duplex_link(add_host(builder, nodes), last, host_link);
  for (const LinkSpec& trunk : trunks) {
    const NodeId next = add_switch(builder, "switch " + std::to_string(nodes.size()));
    builder.add_duplex_link(last, next, trunk);
    builder.add_duplex_link(add_host(builder, nodes), next, host_link);
    last = next;
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(nodes), .switches = {last}};
}

struct ClosShape {
  int leaves = 2;
  int hosts_per_leaf = 2;
  int spines = 2;
};

// Two tiers, each leaf with one trunk to each spine.
[[nodiscard]] inline TestFabric clos(const ClosShape& shape, const LinkSpec& host_link,
                                     const LinkSpec& trunk) {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  std::vector<NodeId> spines;
  for (int spine = 0; spine < shape.spines; ++spine) {
    spines.push_back(add_switch(builder, "spine " + std::to_string(spine)));
  }
  for (int leaf = 0; leaf < shape.leaves; ++leaf) {
    const NodeId node = add_switch(builder, "leaf " + std::to_string(leaf));
    for (const NodeId spine : spines) {
      builder.add_duplex_link(node, spine, trunk);
    }
    for (int host = 0; host < shape.hosts_per_leaf; ++host) {
      builder.add_duplex_link(add_host(builder, nodes), node, host_link);
    }
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(nodes), .switches = spines};
}

// A link between 1 and 800 Gb/s, in odd numbers, with up to 2 us of latency.
[[nodiscard]] inline LinkSpec random_link(RandomStream& random) {
  const auto rate = static_cast<std::int64_t>(1'000'000'007 + random.below(800'000'000'000));
  return fabric_link(Bandwidth(rate), SimTime(static_cast<std::int64_t>(random.below(2'000'000))));
}

// One of the above with two to six hosts and links of random rates and latencies.
[[nodiscard]] inline TestFabric random_fabric(RandomStream& random) {
  switch (random.below(3)) {
    case 0: {
      std::vector<LinkSpec> links(2 + random.below(5));
      for (LinkSpec& link : links) {
        link = random_link(random);
      }
      return uneven_switch(links);
    }
    case 1: {
      std::vector<LinkSpec> trunks(1 + random.below(5));
      for (LinkSpec& trunk : trunks) {
        trunk = random_link(random);
      }
      return switch_row(random_link(random), trunks);
    }
    default: {
      const ClosShape shape{.leaves = 2 + static_cast<int>(random.below(2)),
                            .hosts_per_leaf = 1 + static_cast<int>(random.below(2)),
                            .spines = 1 + static_cast<int>(random.below(3))};
      const LinkSpec host_link = random_link(random);
      return clos(shape, host_link, random_link(random));
    }
  }
}

}  // namespace trainyard
