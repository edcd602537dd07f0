// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/packet_parts/packet_partition.h"

#include <algorithm>
#include <map>
#include <string>

#include "sim/random.h"
#include "support/fabrics.h"
#include "topology/graph/topology.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kLink = fabric_link(gigabits_per_second(100), 1_us);

struct PodFabric {
  Topology topology;
  std::vector<std::vector<NodeId>> pods;  // Leaves and switches above them of each.
};

// Pods of four leaves with two servers of two GPUs each, two switches above all leaves of a pod,
// and eight spines above these.
PodFabric pod_fabric(int pods) {
  TopologyBuilder builder;
  std::vector<std::vector<NodeId>> all;
  std::vector<NodeId> spines;
  for (int i = 0; i < 8; ++i) {
    spines.push_back(
        builder.add_node({.kind = NodeKind::Switch, .name = "spine " + std::to_string(i)}));
  }
  for (int pod = 0; pod < pods; ++pod) {
    std::vector<NodeId> tops;
    for (std::size_t top = 0; top < 2; ++top) {
      tops.push_back(builder.add_node({.kind = NodeKind::Switch, .name = "top"}));
      for (std::size_t i = 0; i < 4; ++i) {
        builder.add_duplex_link(tops.back(), spines[4 * top + i], kLink);
      }
    }
    all.push_back(tops);
    for (int i = 0; i < 4; ++i) {
      const NodeId leaf = builder.add_node({.kind = NodeKind::Switch, .name = "leaf"});
      all.back().push_back(leaf);
      for (const NodeId top : tops) {
        builder.add_duplex_link(leaf, top, kLink);
      }
      for (int number = 0; number < 2; ++number) {
        const ServerId server = builder.add_server();
        for (int gpu = 0; gpu < 2; ++gpu) {
          const NodeId node =
              builder.add_node({.kind = NodeKind::Gpu, .name = "gpu", .server = server});
          builder.add_duplex_link(node, leaf, kLink);
        }
      }
    }
  }
  return {.topology = std::move(builder).build(), .pods = std::move(all)};
}

TEST_CASE("pods and servers are not cut where they need not be, and spines are shared out") {
  const PodFabric fabric = pod_fabric(8);
  for (const std::uint32_t parts : {1U, 2U, 4U, 8U}) {
    INFO("parts=" << parts);
    const std::vector<std::uint32_t> part = cut_into_parts(fabric.topology, parts);
    std::vector<std::uint64_t> links(parts);
    for (std::uint32_t number = 0; number < part.size(); ++number) {
      REQUIRE(part[number] < parts);
      links[part[number]] += fabric.topology.links_from(NodeId(number)).size();
    }
    for (const std::uint64_t count : links) {
      REQUIRE(count == fabric.topology.link_count() / parts);
    }
    for (std::size_t pod = 0; pod < fabric.pods.size(); ++pod) {
      for (const NodeId node : fabric.pods[pod]) {
        REQUIRE(part[node.value()] == pod * parts / 8);
      }
    }
  }
}

TEST_CASE("servers stay whole, and no part gets much more than its share") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "parts");
    const auto parts = static_cast<std::uint32_t>(1 + random.below(6));
    const PodFabric fabric = pod_fabric(1 + static_cast<int>(random.below(7)));
    const std::vector<std::uint32_t> part = cut_into_parts(fabric.topology, parts);
    std::map<std::uint32_t, std::uint32_t> of_server;
    std::vector<std::uint64_t> links(parts);
    for (std::uint32_t number = 0; number < part.size(); ++number) {
      links[part[number]] += fabric.topology.links_from(NodeId(number)).size();
      if (const auto server = fabric.topology.node(NodeId(number)).server) {
        REQUIRE(of_server.try_emplace(server->value(), part[number]).first->second == part[number]);
      }
    }
    // A switch of up to fourteen links at each of three levels, and a server.
    const std::uint64_t share = fabric.topology.link_count() / parts;
    REQUIRE(*std::max_element(links.begin(), links.end()) <= share + 3 * 14 + 2);
    REQUIRE(cut_into_parts(fabric.topology, parts) == part);
  }
}

TEST_CASE("one switch goes to one part, its hosts to all of them") {
  const TestFabric fabric = one_switch(8, kLink);
  const std::vector<std::uint32_t> part = cut_into_parts(fabric.topology, 4);
  std::vector<int> hosts(4);
  for (const NodeId host : fabric.hosts) {
    ++hosts[part[host.value()]];
  }
  REQUIRE(hosts == std::vector<int>{2, 2, 2, 2});
}

}  // namespace
}  // namespace trainyard
