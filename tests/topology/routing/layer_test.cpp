// SPDX-License-Identifier: Apache-2.0
// The layer alone: lists, the chooser, distances. Whole routes are tested in routing_test.cpp.
#include "support/catch.h"

#include "topology/routing/layer.h"

#include <vector>

namespace trainyard {
namespace {

const LinkSpec kLayerLink{.kind = LinkKind::Network, .bandwidth = gigabits_per_second(100)};

bool is_switch(NodeKind kind) {
  return kind == NodeKind::Switch;
}
std::uint32_t one(LinkKind) {
  return 1;
}

TEST_CASE("lists keep the order of entries with equal index") {
  const Lists<int> lists(4, {{2, 7}, {0, 1}, {2, 5}});
  REQUIRE(lists.of(0).size() == 1);
  REQUIRE(lists.of(1).empty());
  REQUIRE(lists.of(2)[0] == 7);
  REQUIRE(lists.of(2)[1] == 5);
  REQUIRE(lists.of(3).empty());
}

TEST_CASE("distances follow the direction of links and end where there is no way") {
  TopologyBuilder builder;
  const auto add = [&](NodeKind kind) { return builder.add_node({.kind = kind, .name = "node"}); };
  const NodeId a = add(NodeKind::Gpu);
  const NodeId b = add(NodeKind::Gpu);
  const NodeId apart = add(NodeKind::Gpu);
  const NodeId first = add(NodeKind::Switch);
  const NodeId second = add(NodeKind::Switch);
  builder.add_duplex_link(a, first, kLayerLink);
  builder.add_duplex_link(b, second, kLayerLink);
  builder.add_link(first, second, kLayerLink);
  const Topology topology = std::move(builder).build();
  Layer layer(topology, is_switch, one);
  REQUIRE(layer.cost(a, b) == 3U);
  REQUIRE(layer.cost(a, second) == 2U);
  REQUIRE(!layer.cost(b, a));
  REQUIRE(!layer.cost(a, apart));
  REQUIRE(layer.endpoints() == std::vector<NodeId>{a, b});
  const std::vector<bool> all(topology.node_count(), true);
  REQUIRE(layer.around(a, all) == std::vector<NodeId>{a, b});
  REQUIRE(layer.around(b, all) == std::vector<NodeId>{a, b});
  REQUIRE(layer.around(apart, all).empty());
}

}  // namespace
}  // namespace trainyard
