// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/routing/general_router.h"

#include <cstdint>
#include <string>
#include <vector>

#include "support/fabrics.h"
#include "topology/graph/dependency_graph.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kLink = fabric_link(gigabits_per_second(100), 1_us);

// Switches in a ring, one host below each.
TestFabric ring(int switches) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> nodes;
  for (int index = 0; index < switches; ++index) {
    nodes.push_back(add_switch(builder, "s" + std::to_string(index)));
    builder.add_duplex_link(add_host(builder, hosts), nodes.back(), kLink);
  }
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    builder.add_duplex_link(nodes[index], nodes[(index + 1) % nodes.size()], kLink);
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(hosts)};
}

std::vector<LinkId> cycle_of(const TestFabric& fabric, int channels = 1) {
  GeneralRouter router(fabric.topology, {.fabric = {.virtual_channels = channels}});
  DependencyGraph graph(fabric.topology.link_count(), channels);
  router.add_dependencies(graph);
  return graph.find_cycle();
}

TEST_CASE("shortest paths on a ring can deadlock if some have two links in a row") {
  REQUIRE(cycle_of(ring(3)).empty());
  REQUIRE(cycle_of(ring(4)).size() == 4);
  const TestFabric fabric = ring(5);
  const std::vector<LinkId> cycle = cycle_of(fabric);
  REQUIRE(cycle.size() == 5);
  for (std::size_t index = 0; index < cycle.size(); ++index) {
    REQUIRE(fabric.topology.link(cycle[index]).target ==
            fabric.topology.link(cycle[(index + 1) % cycle.size()]).source);
  }
}

TEST_CASE("as many virtual channels as links in a row rule out a cycle") {
  // Shortest paths on a ring of n have at most n / 2 links.
  for (int switches = 4; switches < 10; ++switches) {
    REQUIRE(cycle_of(ring(switches), switches / 2).empty());
    REQUIRE_FALSE(cycle_of(ring(switches), 1).empty());
  }
  const TestFabric fabric = ring(6);
  const RoutingOptions options{.fabric = {.virtual_channels = 2}};
  GeneralRouter router(fabric.topology, options);
  const Chooser chooser(options, fabric.hosts[0], fabric.hosts[3], 0, 3);
  std::vector<LinkId> path;
  REQUIRE(router.append_route(fabric.hosts[0], fabric.hosts[3], chooser, path));
  std::vector<std::uint8_t> channels;
  router.virtual_channels(path, channels);
  REQUIRE(channels == std::vector<std::uint8_t>{0, 0, 0, 1, 0});
}

TEST_CASE("a tree has no cycle and uses every link") {
  const TestFabric fabric = one_switch(6, kLink);
  REQUIRE(cycle_of(fabric).empty());
  GeneralRouter router(fabric.topology);
  std::vector<bool> used(fabric.topology.link_count(), false);
  router.mark_used(used);
  REQUIRE(used == std::vector<bool>(fabric.topology.link_count(), true));
}

TEST_CASE("a link between switches of a longer way round is not used") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  const NodeId detour = add_switch(builder, "detour");
  builder.add_duplex_link(add_host(builder, hosts), left, kLink);
  builder.add_duplex_link(add_host(builder, hosts), right, kLink);
  builder.add_duplex_link(left, right, kLink);
  const LinkId unused = builder.add_duplex_link(left, detour, kLink);
  builder.add_duplex_link(detour, right, kLink);
  const Topology topology = std::move(builder).build();
  GeneralRouter router(topology);
  std::vector<bool> used(topology.link_count(), false);
  router.mark_used(used);
  for (std::uint32_t link = 0; link < topology.link_count(); ++link) {
    REQUIRE(used[link] == (link < unused.value()));
  }
}

}  // namespace
}  // namespace trainyard
