// SPDX-License-Identifier: Apache-2.0
// Each finding about the fabric where it belongs, and its absence beside it.
#include "support/catch.h"

#include "support/built_clusters.h"
#include "support/lint_run.h"

namespace trainyard {
namespace {

LinkSpec rate(std::int64_t gigabits) {
  return fabric_link(gigabits_per_second(gigabits), SimTime(1));
}

Cluster hosts_on_a_switch(int hosts, std::uint16_t ports) {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  builder.set_parts({"", "a switch"});
  const NodeId hub = builder.add_node({.kind = NodeKind::Switch,
                                       .name = "hub",
                                       .latency = {},
                                       .server = {},
                                       .part = 1,
                                       .ports = ports});
  for (int host = 0; host < hosts; ++host) {
    builder.add_duplex_link(add_host(builder, nodes), hub, rate(100));
  }
  return cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(nodes)});
}

// Two leaves below two spines, which a useless cable joins.
Cluster joined_spines() {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId spine0 = add_switch(builder, "spine0");
  const NodeId spine1 = add_switch(builder, "spine1");
  for (int leaf = 0; leaf < 2; ++leaf) {
    const NodeId node = add_switch(builder, "leaf" + std::to_string(leaf));
    builder.add_duplex_link(node, spine0, rate(100));
    builder.add_duplex_link(node, spine1, rate(100));
    builder.add_duplex_link(add_host(builder, hosts), node, rate(100));
  }
  builder.add_duplex_link(spine0, spine1, rate(100));
  return cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
}

}  // namespace

TEST_CASE("more cables than a switch has ports are an error") {
  REQUIRE(lint(hosts_on_a_switch(4, 4)).empty());
  REQUIRE(lint(hosts_on_a_switch(4, 0)).empty());  // Unknown.
  REQUIRE(findings_of(hosts_on_a_switch(5, 4), "ports") ==
          Lines{"error: hub uses 5 ports, and a switch has 4"});
}

TEST_CASE("rails below leaves with different uplinks are a warning") {
  REQUIRE(findings_of(shipped_cluster("dgx-h100", {.nodes = 64}), "unequal-rails").empty());
  // Leaf 0 is one of two of rail 0: (48 + 42) / 2 GB/s of uplinks a NIC.
  REQUIRE(findings_of(shipped_cluster("dgx-h100", {.nodes = 64, .pulls = {"leaf0,spine1"}}),
                      "unequal-rails") ==
          Lines{"warning: NIC 0 of servers: 2 leaves, 48 GB/s each, 45 GB/s of uplinks; NIC 1 of "
                "servers: 2 leaves, 48 GB/s each, 48 GB/s of uplinks"});
}

TEST_CASE("oversubscribed tiers are a note with their worst switch") {
  const auto of_trunks = [](std::int64_t gigabits) {
    return findings_of(cluster_of(clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 2}, rate(100),
                                       rate(gigabits))),
                       "oversubscription");
  };
  REQUIRE(of_trunks(200).empty());
  REQUIRE(of_trunks(100) == Lines{"note: tier 0: leaf 0 has 50 GB/s down and 25 GB/s up, 2:1"});
}

TEST_CASE("a ring whose packets wait for one another in a circle can deadlock, a row cannot") {
  REQUIRE(findings_of(torus({6}, rate(10), rate(100)), "deadlock") ==
          Lines{"warning: buffers wait for one another in a cycle, switch 0 -> switch 1 -> switch "
                "2 -> switch 3 -> switch 4 -> switch 5 -> switch 0: with PFC or credits the fabric "
                "can deadlock"});
  REQUIRE(
      findings_of(cluster_of(switch_row(rate(10), std::vector<LinkSpec>(5, rate(100)))), "deadlock")
          .empty());
  REQUIRE(findings_of(shipped_cluster("hgx-h100-clos"), "deadlock").empty());
}

TEST_CASE("a cable between spines is on no shortest path") {
  REQUIRE(findings_of(joined_spines(), "unused-links") ==
          Lines{"note: 2 of 14 network links are on no route, spine0 -> spine1 the first"});
}

TEST_CASE("flows of a ring over servers that collide are a note with their seed") {
  // Two flows of two NICs on one link of the rate of one.
  REQUIRE(findings_of(shipped_cluster("hgx-h100-clos"), "collisions").size() == 1);
  const auto with = [](const std::string& setting) {
    return findings_of(shipped_cluster("hgx-h100-clos", {.settings = {setting}}), "collisions");
  };
  REQUIRE(with("fabric.routing=static").empty());
  REQUIRE(with("fabric.routing_seed=7")[0].find("note: ecmp, seed 7: ") == 0);
}

}  // namespace trainyard
