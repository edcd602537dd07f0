// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/topology.h"

#include <vector>

#include "support/built_clusters.h"

namespace trainyard {
namespace {

const LinkSpec kLink{.kind = LinkKind::Network, .bandwidth = gigabits_per_second(100)};

Node node(NodeKind kind, const char* name) {
  return {.kind = kind, .name = name};
}

TEST_CASE("a topology gives back what was added, links in the order of adding") {
  TopologyBuilder builder;
  const NodeId a = builder.add_node(node(NodeKind::Gpu, "a"));
  const NodeId b = builder.add_node(node(NodeKind::Switch, "b"));
  const NodeId c = builder.add_node(node(NodeKind::Nic, "c"));
  const LinkId bc = builder.add_link(b, c, kLink);
  const LinkId ab = builder.add_duplex_link(a, b, kLink);
  const LinkId again = builder.add_link(b, c, kLink);
  const Topology topology = std::move(builder).build();

  REQUIRE(topology.node_count() == 3);
  REQUIRE(topology.link_count() == 4);
  REQUIRE(topology.node(c).name == "c");
  REQUIRE(topology.link(ab).source == a);
  REQUIRE(topology.link(ab).target == b);
  const LinkId ba(ab.value() + 1);
  REQUIRE(topology.link(ba).source == b);
  REQUIRE(topology.link(ba).target == a);
  const auto from_b = topology.links_from(b);
  REQUIRE(std::vector<LinkId>(from_b.begin(), from_b.end()) == std::vector<LinkId>{bc, ba, again});
  REQUIRE(topology.links_from(c).empty());
}

TEST_CASE("servers are dense from zero") {
  TopologyBuilder builder;
  REQUIRE(builder.add_server() == ServerId(0));
  const ServerId second = builder.add_server();
  REQUIRE(second == ServerId(1));
  const NodeId gpu = builder.add_node({.kind = NodeKind::Gpu, .name = "gpu", .server = second});
  const Topology topology = std::move(builder).build();
  REQUIRE(topology.server_count() == 2);
  REQUIRE(topology.node(gpu).server == second);
}

TEST_CASE("an empty topology has no nodes and no links") {
  const Topology topology = TopologyBuilder().build();
  REQUIRE(topology.node_count() == 0);
  REQUIRE(topology.link_count() == 0);
}

TEST_CASE("kinds have names") {
  REQUIRE(to_string(NodeKind::Gpu) == "gpu");
  REQUIRE(to_string(NodeKind::Switch) == "switch");
  REQUIRE(to_string(LinkKind::NvLink) == "nvlink");
  REQUIRE(to_string(LinkKind::Network) == "network");
}

TEST_CASE("an edited topology keeps its nodes, links and numbers", "[topology-edits]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const Topology& before = cluster.topology;
  const Topology after = edited(
      before, {.link = [](LinkId /*id*/, LinkSpec& spec) { spec.latency = spec.latency * 2; },
               .node = [](NodeId /*id*/, Node& node) { node.latency = node.latency * 3; }});
  REQUIRE(after.node_count() == before.node_count());
  REQUIRE(after.link_count() == before.link_count());
  REQUIRE(after.server_count() == before.server_count());
  REQUIRE(after.parts() == before.parts());
  for (std::uint32_t index = 0; index < before.node_count(); ++index) {
    const NodeId id(index);
    REQUIRE(after.node(id).name == before.node(id).name);
    REQUIRE(after.node(id).latency == before.node(id).latency * 3);
    REQUIRE(after.links_from(id).size() == before.links_from(id).size());
  }
  for (std::uint32_t index = 0; index < before.link_count(); ++index) {
    const LinkId id(index);
    REQUIRE(after.link(id).source == before.link(id).source);
    REQUIRE(after.link(id).target == before.link(id).target);
    REQUIRE(after.link(id).spec.bandwidth == before.link(id).spec.bandwidth);
    REQUIRE(after.link(id).spec.latency == before.link(id).spec.latency * 2);
  }
}

}  // namespace
}  // namespace trainyard
