// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/cluster/server_kinds.h"

#include "support/built_clusters.h"

namespace trainyard {
namespace {

std::vector<std::int64_t> counts_of(const Cluster& cluster) {
  const SwitchGraph graph(cluster.topology);
  std::vector<std::int64_t> counts;
  const ServerKinds kinds(cluster, graph);
  for (const AlikeServers& kind : kinds.kinds()) {
    counts.push_back(kind.count);
  }
  return counts;
}

}  // namespace

TEST_CASE("servers of one file are of one kind") {
  for (const char* name : {"dgx-h100", "dgx-1", "mi300x", "h100-1gpu-400g"}) {
    const Cluster cluster = shipped_cluster(name);
    REQUIRE(counts_of(cluster) == std::vector<std::int64_t>{cluster.nodes});
  }
}

TEST_CASE("a broken link makes a kind of its own, in the order of the servers") {
  const Cluster cluster = shipped_cluster(
      "dgx-h100",
      {.nodes = 5,
       .pulls = {"server0/nic3,leaf3", "server2/nic3,leaf3", "server4/gpu1,server4/nvswitch"}});
  REQUIRE(counts_of(cluster) == std::vector<std::int64_t>{2, 2, 1});
  const SwitchGraph graph(cluster.topology);
  const ServerKinds kinds(cluster, graph);
  REQUIRE(kinds.kinds()[0].first == ServerId(0));
  REQUIRE(kinds.kinds()[0].second == ServerId(2));
  REQUIRE(kinds.kind_of(ServerId(2)) == 0);
  REQUIRE(kinds.kind_of(ServerId(1)) == 1);
  REQUIRE(kinds.kind_of(ServerId(4)) == 2);
  REQUIRE(!kinds.kinds()[2].second);
}

TEST_CASE("the component of the fabric tells servers apart") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const LinkSpec link = fabric_link(gigabits_per_second(100), SimTime(1));
  for (int island = 0; island < 2; ++island) {
    const NodeId hub = add_switch(builder, "island " + std::to_string(island));
    builder.add_duplex_link(add_host(builder, hosts), hub, link);
    builder.add_duplex_link(add_host(builder, hosts), hub, link);
  }
  const Cluster cluster =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
  REQUIRE(counts_of(cluster) == std::vector<std::int64_t>{2, 2});
}

TEST_CASE("GPUs that no rank uses are not among a server's") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2, .gpus_per_node = 3});
  const SwitchGraph graph(cluster.topology);
  const ServerKinds kinds(cluster, graph);
  REQUIRE(kinds.gpus_of(ServerId(1)).size() == 3);
  REQUIRE(kinds.nodes_of(ServerId(1)).size() > 3);
  REQUIRE(cluster.topology.node(kinds.gpus_of(ServerId(1))[2]).name == "server1/gpu2");
}

}  // namespace trainyard
