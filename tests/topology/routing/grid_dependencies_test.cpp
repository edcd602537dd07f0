// SPDX-License-Identifier: Apache-2.0
// Deadlock of grids: what theory says of whole ones, and for broken ones the same answer as from
// all routes one by one.
#include "support/catch.h"

#include "topology/routing/grid_dependencies.h"

#include <set>
#include <string>

#include "sim/random.h"
#include "support/dependencies.h"

namespace trainyard {
namespace {

std::string grid(const std::string& layout, const std::string& shape, int channels,
                 const std::string& routing = "ecmp") {
  return "template: " + layout + ", shape: [" + shape + "], switch: QuantumX800-Q3400, " +
         "cable: 1 m, virtual_channels: " + std::to_string(channels) + ", routing: " + routing;
}

bool has_cycle(int nodes, const std::string& fabric) {
  const Cluster cluster = cluster_of(nodes, 1, fabric);
  const auto router = make_fabric_router(cluster.topology, cluster.routing);
  return !stated_cycle(cluster.topology, *router, cluster.routing).empty();
}

// On a ring of k the shorter way has at most k / 2 hops. With k = 3 that is one, so no packet holds
// one link of the ring while it waits for the next; from 4 on there are ways of two hops.
TEST_CASE("a ring of four or more needs the date line") {
  for (int length = 2; length <= 9; ++length) {
    INFO(length);
    REQUIRE(has_cycle(length, grid("ring", std::to_string(length), 1)) == (length >= 4));
    REQUIRE(!has_cycle(length, grid("ring", std::to_string(length), 2)));
    const std::string square = std::to_string(length) + ", 3";
    REQUIRE(has_cycle(length * 3, grid("torus", square, 1)) == (length >= 4));
    REQUIRE(!has_cycle(length * 3, grid("torus", square, 2)));
  }
  REQUIRE(has_cycle(64, grid("torus", "4, 4, 4", 1)));
  REQUIRE(!has_cycle(64, grid("torus", "4, 4, 4", 2)));
  REQUIRE(!has_cycle(64, grid("torus", "4, 4, 4", 1) + ", wraps: [false, false, false]"));
  REQUIRE(has_cycle(64, grid("torus", "4, 4, 4", 1) + ", wraps: [false, false, true]"));
}

TEST_CASE("meshes and HyperX need one channel in dimension order, two for Valiant") {
  for (const std::string layout : {"mesh", "hyperx"}) {
    for (const std::string shape : {"4, 4", "2, 3, 2", "3, 5"}) {
      INFO(layout << " " << shape);
      const int nodes = shape == "4, 4" ? 16 : shape == "3, 5" ? 15 : 12;
      REQUIRE(!has_cycle(nodes, grid(layout, shape, 1)));
      REQUIRE(has_cycle(nodes, grid(layout, shape, 1, "valiant")));
      REQUIRE(!has_cycle(nodes, grid(layout, shape, 2, "valiant")));
    }
  }
  REQUIRE(has_cycle(16, grid("torus", "4, 4", 2, "valiant")));
  REQUIRE(!has_cycle(16, grid("torus", "4, 4", 4, "valiant")));
}

TEST_CASE("the stated dependencies have a cycle if and only if the routes have one") {
  RandomStream random(1, "broken grids");
  const std::string shapes[] = {"4", "5", "3, 3", "4, 2", "4, 3", "2, 2, 3", "6"};
  const int nodes[] = {4, 5, 9, 8, 12, 12, 6};
  const std::string layouts[] = {"torus", "mesh", "hyperx"};
  int cycles = 0;
  int broken_grids = 0;
  for (int seed = 0; seed < 250; ++seed) {
    const std::size_t shape = random.below(std::size(shapes));
    const int channels = 1 + static_cast<int>(random.below(2));
    const std::string fabric = grid(layouts[random.below(3)], shapes[shape], channels);
    const Cluster cluster = cluster_of(nodes[shape], 1, fabric);
    const std::uint64_t max = random.below(5);
    std::set<NodeId> switches;
    const Topology broken = without_links(cluster.topology, [&](LinkId link) {
      const Link& of = cluster.topology.link(link);
      return cluster.topology.node(of.source).kind == NodeKind::Switch &&
             cluster.topology.node(of.target).kind == NodeKind::Switch &&
             random.below(cluster.topology.link_count()) < max;
    });
    INFO(fabric << ", seed " << seed);
    const auto router = make_fabric_router(broken, cluster.routing);
    const bool routed = !routed_cycle(broken, *router, cluster.routing, 40).empty();
    REQUIRE(!stated_cycle(broken, *router, cluster.routing).empty() == routed);
    cycles += routed ? 1 : 0;
    broken_grids += broken.link_count() < cluster.topology.link_count() ? 1 : 0;
  }
  REQUIRE(cycles > 20);
  REQUIRE(broken_grids > 100);
}

TEST_CASE("with Valiant's routes a cycle that they have is stated") {
  RandomStream random(2, "broken grids");
  for (const std::string layout : {"torus", "mesh", "hyperx"}) {
    for (const int channels : {1, 2, 3, 4}) {
      const Cluster cluster = cluster_of(12, 1, grid(layout, "4, 3", channels, "valiant"));
      const auto router = make_fabric_router(cluster.topology, cluster.routing);
      INFO(layout << ", " << channels << " channels");
      REQUIRE(stated_cycle(cluster.topology, *router, cluster.routing).empty() ==
              routed_cycle(cluster.topology, *router, cluster.routing, 200).empty());
    }
  }
}

// Six duplex links a switch, two buffers each, and four hubs: as much at 4,096 as at 512.
TEST_CASE("the graph of dependencies grows with the number of switches only") {
  const auto edges_of = [](const std::string& shape, int nodes) {
    const Cluster cluster = cluster_of(nodes, 1, grid("torus", shape, 2));
    const auto router = make_fabric_router(cluster.topology, cluster.routing);
    DependencyGraph graph(cluster.topology.link_count(), 2);
    router->add_dependencies(graph);
    return static_cast<double>(graph.edge_count()) / nodes;
  };
  REQUIRE(edges_of("8, 8, 8", 512) == Approx(edges_of("16, 16, 16", 4096)).epsilon(0.25));
}

}  // namespace
}  // namespace trainyard
