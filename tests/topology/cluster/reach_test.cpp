// SPDX-License-Identifier: Apache-2.0
// Against a look at all pairs.
#include "support/catch.h"

#include "topology/cluster/reach.h"

#include "support/built_clusters.h"

namespace trainyard {
namespace {

const LinkSpec kLink = fabric_link(gigabits_per_second(100), SimTime(1));

// Ordered pairs of GPUs without a route.
std::int64_t pairs_without_route(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  std::int64_t pairs = 0;
  for (const NodeId source : cluster.gpus) {
    for (const NodeId target : cluster.gpus) {
      pairs += routing.route(source, target, 0, path) ? 0 : 1;
    }
  }
  return pairs;
}

std::optional<Unreachable> search(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  const SwitchGraph graph(cluster.topology);
  return find_unreachable(cluster, routing, graph, ServerKinds(cluster, graph));
}

Cluster islands(const std::vector<int>& hosts_of) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  for (std::size_t island = 0; island < hosts_of.size(); ++island) {
    const NodeId hub = add_switch(builder, "island " + std::to_string(island));
    for (int host = 0; host < hosts_of[island]; ++host) {
      builder.add_duplex_link(add_host(builder, hosts), hub, kLink);
    }
  }
  return cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
}

}  // namespace

TEST_CASE("where all pairs have routes nothing is found") {
  for (const char* name : {"dgx-h100", "dgx-1", "rtx4090-pcie", "h100-1gpu-400g"}) {
    const Cluster cluster = shipped_cluster(name);
    REQUIRE(pairs_without_route(cluster) == 0);
    REQUIRE(!search(cluster));
    REQUIRE(!describe_unreachable(cluster));
  }
}

TEST_CASE("pairs between islands are counted and the first is named with its switches") {
  for (const std::vector<int>& sizes :
       {std::vector<int>{1, 1}, {3, 2}, {4, 1, 2}, {1, 1, 1, 1, 5}}) {
    const Cluster cluster = islands(sizes);
    const auto found = search(cluster);
    REQUIRE(found);
    REQUIRE(found->pairs == pairs_without_route(cluster));
    REQUIRE(found->why.find("no cables join island 0 and island 1") == 0);
  }
}

TEST_CASE("a GPU without a NIC is the reason") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId hub = add_switch(builder, "hub");
  builder.add_duplex_link(add_host(builder, hosts), hub, kLink);
  builder.add_duplex_link(add_host(builder, hosts), hub, kLink);
  (void)add_host(builder, hosts);
  const Cluster cluster =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
  REQUIRE(describe_unreachable(cluster) ==
          "host 0 and host 2 cannot reach each other: host 2 reaches no NIC with a cable");
  REQUIRE(search(cluster)->pairs == 4);
}

TEST_CASE("random cuts of a Clos are found exactly when a pair is apart") {
  int apart = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "reach");
    TopologyBuilder builder;
    std::vector<NodeId> hosts;
    std::vector<NodeId> spines = {add_switch(builder, "spine 0"), add_switch(builder, "spine 1")};
    for (int leaf = 0; leaf < 3; ++leaf) {
      const NodeId node = add_switch(builder, "leaf " + std::to_string(leaf));
      for (const NodeId spine : spines) {
        if (random.below(3) > 0) {
          builder.add_duplex_link(node, spine, kLink);
        }
      }
      builder.add_duplex_link(add_host(builder, hosts), node, kLink);
      builder.add_duplex_link(add_host(builder, hosts), node, kLink);
    }
    const Cluster cluster =
        cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
    const std::int64_t pairs = pairs_without_route(cluster);
    const auto found = search(cluster);
    REQUIRE(found.has_value() == (pairs > 0));
    REQUIRE((!found || found->pairs == pairs));
    apart += found ? 1 : 0;
  }
  REQUIRE(apart > 5);
  REQUIRE(apart < 55);
}

}  // namespace trainyard
