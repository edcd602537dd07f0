// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/switch_graph.h"

#include "support/fabrics.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kHost = fabric_link(gigabits_per_second(400), 100_ns);
const LinkSpec kTrunk = fabric_link(gigabits_per_second(800), 100_ns);

}  // namespace

TEST_CASE("parallel links are one edge with their sum, and hosts are ports of their leaves") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId leaf = add_switch(builder, "leaf");
  const NodeId spine = add_switch(builder, "spine");
  builder.add_duplex_link(add_host(builder, hosts), leaf, kHost);
  builder.add_duplex_link(hosts[0], leaf, kHost);
  builder.add_duplex_link(leaf, spine, kTrunk);
  builder.add_duplex_link(leaf, spine, kHost);
  const Topology topology = std::move(builder).build();
  const SwitchGraph graph(topology);
  REQUIRE(graph.size() == 2);
  REQUIRE(graph.edges().size() == 2);
  REQUIRE(graph.edges()[0].links == 2);
  REQUIRE(graph.edges()[0].bits_per_second == 1'200'000'000'000);
  REQUIRE(graph.ports().size() == 1);
  REQUIRE(graph.ports()[0].endpoint == hosts[0]);
  REQUIRE(graph.ports()[0].bits_per_second == 800'000'000'000);
  REQUIRE(graph.index_of(spine) == 1U);
  REQUIRE(!graph.index_of(hosts[0]));
}

TEST_CASE("tiers are hops from the leaves; switches without a way to one have none") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId leaf = add_switch(builder, "leaf");
  const NodeId spine = add_switch(builder, "spine");
  const NodeId core = add_switch(builder, "core");
  (void)add_switch(builder, "in its box");
  builder.add_duplex_link(add_host(builder, hosts), leaf, kHost);
  builder.add_duplex_link(leaf, spine, kTrunk);
  builder.add_duplex_link(spine, core, kTrunk);
  const Topology topology = std::move(builder).build();
  const SwitchGraph graph(topology);
  REQUIRE(graph.tier(0) == 0U);
  REQUIRE(graph.tier(1) == 1U);
  REQUIRE(graph.tier(2) == 2U);
  REQUIRE(!graph.tier(3));
  REQUIRE(graph.component(2) == graph.component(0));
  REQUIRE(graph.component(3) != graph.component(0));
}

TEST_CASE("a host on two switches does not join them") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId first = add_switch(builder, "plane 0");
  const NodeId second = add_switch(builder, "plane 1");
  builder.add_duplex_link(add_host(builder, hosts), first, kHost);
  builder.add_duplex_link(hosts[0], second, kHost);
  const Topology topology = std::move(builder).build();
  const SwitchGraph graph(topology);
  REQUIRE(graph.ports().size() == 2);
  REQUIRE(graph.component(0) != graph.component(1));
}

TEST_CASE("a link between two hosts is no part of it") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId a = add_host(builder, hosts);
  builder.add_duplex_link(a, add_host(builder, hosts), kHost);
  const Topology topology = std::move(builder).build();
  const SwitchGraph graph(topology);
  REQUIRE(graph.size() == 0);
  REQUIRE(graph.ports().empty());
}

TEST_CASE("regions are joined by the edges that are asked for, whatever their direction") {
  const std::vector<SwitchEdge> edges{{.source = 4, .target = 3, .links = 1},
                                      {.source = 3, .target = 1, .links = 1},
                                      {.source = 2, .target = 0, .links = 2},
                                      {.source = 1, .target = 2, .links = 2}};
  const auto regions = [&](std::uint32_t min, std::uint32_t max) {
    return switch_regions(
        5, edges, [&](const SwitchEdge& edge) { return edge.links >= min && edge.links <= max; });
  };
  using Regions = std::vector<std::uint32_t>;
  REQUIRE(regions(1, 1) == Regions{0, 1, 2, 1, 1});
  REQUIRE(regions(2, 2) == Regions{0, 0, 0, 3, 4});
  REQUIRE(regions(1, 2) == Regions{0, 0, 0, 0, 0});
  REQUIRE(regions(3, 3) == Regions{0, 1, 2, 3, 4});
}

}  // namespace trainyard
