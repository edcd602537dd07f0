// SPDX-License-Identifier: Apache-2.0
// Deadlock of dragonflies: never with the channels of Kim et al., and whatever cycle the routes
// have is stated.
#include "support/catch.h"

#include "topology/routing/dragonfly_dependencies.h"

#include <string>

#include "sim/random.h"
#include "support/dependencies.h"

namespace trainyard {
namespace {

std::string mesh(int channels, const std::string& routing) {
  return "template: dragonfly, groups: 5, switches_per_group: 4, endpoints_per_switch: 1, "
         "global_links: 1, switch: Rosetta, local_cable: 2 m, global_cable: 20 m, "
         "virtual_channels: " +
         std::to_string(channels) + ", routing: " + routing;
}

std::string plus(int channels, const std::string& routing) {
  return "template: dragonfly-plus, groups: 5, leaves_per_group: 4, spines_per_group: 2, "
         "endpoints_per_switch: 1, global_links: 1, switch: Rosetta, local_cable: 2 m, "
         "global_cable: 20 m, virtual_channels: " +
         std::to_string(channels) + ", routing: " + routing;
}

bool states_cycle(const std::string& fabric) {
  const Cluster cluster = cluster_of(20, 1, fabric);
  const auto router = make_fabric_router(cluster.topology, cluster.routing);
  return !stated_cycle(cluster.topology, *router, cluster.routing).empty();
}

TEST_CASE("a dragonfly has no cycle with a channel for each group that a path visits") {
  REQUIRE(!states_cycle(mesh(2, "ecmp")));
  REQUIRE(!states_cycle(mesh(3, "valiant")));
  REQUIRE(!states_cycle(mesh(3, "adaptive")));
  REQUIRE(!states_cycle(plus(2, "ecmp")));
  REQUIRE(!states_cycle(plus(3, "valiant")));
}

TEST_CASE("a dragonfly has a cycle with one channel less") {
  REQUIRE(states_cycle(mesh(1, "ecmp")));
  REQUIRE(states_cycle(mesh(2, "valiant")));
  REQUIRE(states_cycle(plus(2, "valiant")));
  // Up, across, down: minimal routes of a dragonfly+ turn up again nowhere.
  REQUIRE(!states_cycle(plus(1, "ecmp")));
}

TEST_CASE("a cycle that the routes of a dragonfly have is stated, links missing or not") {
  RandomStream random(1, "broken dragonflies");
  const std::string policies[] = {"ecmp", "valiant"};
  int cycles = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const int channels = 1 + static_cast<int>(random.below(3));
    const std::string& policy = policies[random.below(2)];
    const std::string fabric =
        random.below(2) == 0 ? mesh(channels, policy) : plus(channels, policy);
    const Cluster cluster = cluster_of(20, 1, fabric);
    const std::uint64_t max = random.below(6);
    const Topology broken = without_links(cluster.topology, [&](LinkId link) {
      const Link& of = cluster.topology.link(link);
      return cluster.topology.node(of.source).kind == NodeKind::Switch &&
             cluster.topology.node(of.target).kind == NodeKind::Switch &&
             random.below(cluster.topology.link_count()) < max;
    });
    INFO(fabric << ", seed " << seed);
    const auto router = make_fabric_router(broken, cluster.routing);
    const bool routed = !routed_cycle(broken, *router, cluster.routing, 8).empty();
    REQUIRE((!routed || !stated_cycle(broken, *router, cluster.routing).empty()));
    cycles += routed ? 1 : 0;
  }
  REQUIRE(cycles > 5);
}

}  // namespace
}  // namespace trainyard
