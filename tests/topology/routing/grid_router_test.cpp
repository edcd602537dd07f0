// SPDX-License-Identifier: Apache-2.0
// Routes on grids: for all pairs of small ones against the formula of their distance and against
// the general router; ties, Valiant, adaptive choice; and with random links missing.
#include "support/catch.h"

#include "topology/routing/grid_router.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/random.h"
#include "support/clusters.h"
#include "topology/routing/general_router.h"

namespace trainyard {
namespace {

const std::string kCables = ", switch: QuantumX800-Q3400, cable: 1 m";

struct RouterShape {
  std::string layout;
  std::vector<int> lengths;

  [[nodiscard]] int switches() const {
    int product = 1;
    for (const int length : lengths) {
      product *= length;
    }
    return product;
  }
  [[nodiscard]] std::string text() const {
    std::string list;
    for (const int length : lengths) {
      list += (list.empty() ? "" : ", ") + std::to_string(length);
    }
    return "template: " + layout + ", shape: [" + list + "]" + kCables;
  }
  // Hops between two switches: in each dimension the shorter way round, the difference, or one.
  [[nodiscard]] int distance(int from, int to) const {
    int sum = 0;
    for (const int length : lengths) {
      const int apart = std::abs(from % length - to % length);
      if (layout == "hyperx" || layout == "full") {
        sum += apart > 0 ? 1 : 0;
      } else if (layout == "torus" || layout == "ring") {
        sum += std::min(apart, length - apart);
      } else {
        sum += apart;
      }
      from /= length;
      to /= length;
    }
    return sum;
  }
};

const std::vector<RouterShape> kRouterShapes = {
    {"torus", {4}},       {"torus", {3, 3}},      {"torus", {2, 4}},     {"torus", {4, 3, 2}},
    {"torus", {5, 1, 4}}, {"torus", {2, 2, 2}},   {"mesh", {5}},         {"mesh", {3, 4}},
    {"mesh", {2, 3, 3}},  {"hyperx", {4, 3}},     {"hyperx", {2, 3, 3}}, {"ring", {7}},
    {"full", {6}},        {"torus", {2, 2, 3, 2}}};

TEST_CASE("every route of a grid is a walk of the least hops in any policy but Valiant's") {
  for (const RouterShape& shape : kRouterShapes) {
    for (const std::string policy : {"ecmp", "static", "adaptive"}) {
      INFO(shape.text() << ", " << policy);
      const Cluster cluster =
          cluster_of(shape.switches(), 1, shape.text() + ", routing: " + policy);
      const auto router = make_fabric_router(cluster.topology, cluster.routing);
      int farthest = 0;
      for (int from = 0; from < shape.switches(); ++from) {
        for (int to = 0; to < shape.switches(); ++to) {
          const NodeId source = router->endpoints()[static_cast<std::size_t>(from)];
          const NodeId target = router->endpoints()[static_cast<std::size_t>(to)];
          if (from == to) {
            continue;
          }
          const auto path = fabric_route(*router, cluster.routing, source, target, 7);
          REQUIRE(is_walk(cluster.topology, source, target, path));
          REQUIRE(is_simple(cluster.topology, path));
          REQUIRE(static_cast<int>(path.size()) == shape.distance(from, to) + 2);
          farthest = std::max(farthest, shape.distance(from, to));
        }
      }
      REQUIRE(router->diameter() == farthest);
    }
  }
}

TEST_CASE("dimensions are corrected in order") {
  const RouterShape shape{"torus", {4, 4, 4}};
  const Cluster cluster = cluster_of(64, 1, shape.text());
  const auto router = make_fabric_router(cluster.topology, cluster.routing);
  const std::uint32_t first = cluster.routing.fabric.first_switch.value();
  for (const NodeId source : router->endpoints()) {
    const auto path = fabric_route(*router, cluster.routing, source, router->endpoints()[42], 1);
    std::uint32_t last = 0;
    for (std::size_t hop = 1; hop + 1 < path.size(); ++hop) {
      const Link& link = cluster.topology.link(path[hop]);
      const std::uint32_t differ = (link.source.value() - first) ^ (link.target.value() - first);
      const std::uint32_t dimension = differ < 4 ? 0 : differ < 16 ? 1 : 2;
      REQUIRE(dimension >= last);
      last = dimension;
    }
  }
}

// The switch after the first one on the way half round a ring of `length`.
NodeId second_switch(const Cluster& cluster, FabricRouter& router, std::size_t from, std::size_t to,
                     std::uint32_t label) {
  const auto path = fabric_route(router, cluster.routing, router.endpoints()[from],
                                 router.endpoints()[to], label);
  return cluster.topology.link(path[1]).target;
}

TEST_CASE("half way round an even ring ecmp spreads over both ways and static alternates") {
  const RouterShape shape{"ring", {8}};
  const Cluster ecmp = cluster_of(8, 1, shape.text());
  const auto router = make_fabric_router(ecmp.topology, ecmp.routing);
  constexpr std::uint32_t kFlows = 10'000;
  std::map<NodeId, int> count;
  for (std::uint32_t label = 0; label < kFlows; ++label) {
    ++count[second_switch(ecmp, *router, 0, 4, label)];
  }
  REQUIRE(count.size() == 2);
  // Four standard deviations of a fair coin: 4 sqrt(n) / 2.
  REQUIRE(std::abs(count.begin()->second - static_cast<int>(kFlows) / 2) < 200);

  const Cluster fixed = cluster_of(8, 1, shape.text() + ", routing: static");
  const auto other = make_fabric_router(fixed.topology, fixed.routing);
  int up = 0;
  for (std::size_t to = 0; to < 8; ++to) {
    const NodeId next = second_switch(fixed, *other, (to + 4) % 8, to, 0);
    REQUIRE(next == second_switch(fixed, *other, (to + 4) % 8, to, 99));
    up += next.value() == fixed.routing.fabric.first_switch.value() + (to + 5) % 8 ? 1 : 0;
  }
  REQUIRE(up == 4);
}

TEST_CASE("adaptive routing spreads connections evenly over ties and parallel links") {
  const Cluster cluster = cluster_of(
      8, 1,
      RouterShape{"ring", {8}}.text() + ", links: 3, endpoints_per_switch: 1, routing: adaptive");
  Routing routing(cluster.topology, cluster.routing);
  std::map<LinkId, int> count;
  std::vector<LinkId> path;
  for (std::uint32_t label = 0; label < 60; ++label) {
    REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[4], label, path));
    for (const LinkId link : path) {
      const Link& on = cluster.topology.link(link);
      if (cluster.topology.node(on.source).kind == NodeKind::Switch &&
          cluster.topology.node(on.target).kind == NodeKind::Switch) {
        ++count[link];
      }
    }
  }
  REQUIRE(count.size() == 2 * 4 * 3);
  for (const auto& [link, connections] : count) {
    REQUIRE(connections == 10);
  }
}

TEST_CASE("Valiant goes through every switch, never twice over a link, in twice the channels") {
  for (const RouterShape& shape :
       {RouterShape{"torus", {4, 4}}, RouterShape{"mesh", {4, 3}}, RouterShape{"hyperx", {3, 4}}}) {
    INFO(shape.text());
    const Cluster cluster = cluster_of(shape.switches(), 1, shape.text() + ", routing: valiant");
    REQUIRE(cluster.routing.fabric.virtual_channels == (shape.layout == "torus" ? 4 : 2));
    const auto router = make_fabric_router(cluster.topology, cluster.routing);
    REQUIRE(!router->diameter());
    std::set<NodeId> passed;
    std::vector<std::uint8_t> channels;
    const std::size_t last = router->endpoints().size() - 1;
    for (std::uint32_t label = 0; label < 500; ++label) {
      const NodeId source = router->endpoints()[label % last];
      const NodeId target = router->endpoints()[last];
      const auto path = fabric_route(*router, cluster.routing, source, target, label);
      REQUIRE(is_walk(cluster.topology, source, target, path));
      REQUIRE(!repeats_a_link(path));
      router->virtual_channels(path, channels);
      for (std::size_t hop = 0; hop < path.size(); ++hop) {
        REQUIRE(channels[hop] < cluster.routing.fabric.virtual_channels);
        passed.insert(cluster.topology.link(path[hop]).source);
      }
    }
    REQUIRE(std::ranges::count_if(passed, [&](NodeId node) {
              return cluster.topology.node(node).kind == NodeKind::Switch;
            }) == shape.switches());
  }
}

TEST_CASE("a ring changes its channel behind the wrap") {
  const Cluster cluster = cluster_of(7, 1, RouterShape{"ring", {7}}.text());
  const auto router = make_fabric_router(cluster.topology, cluster.routing);
  const auto path = fabric_route(*router, cluster.routing, router->endpoints()[5],
                                 router->endpoints()[1], 0);  // 5, 6, 0, 1.
  std::vector<std::uint8_t> channels;
  router->virtual_channels(path, channels);
  REQUIRE(channels == std::vector<std::uint8_t>{0, 0, 0, 1, 0});
}

TEST_CASE("with links missing a route is found where there is one") {
  RandomStream random(1, "missing links");
  for (int seed = 0; seed < 120; ++seed) {
    const RouterShape& shape = kRouterShapes[random.below(kRouterShapes.size())];
    const Cluster cluster = cluster_of(shape.switches(), 1, shape.text());
    const std::uint64_t share = 2 + random.below(12);
    std::set<LinkId> missing;
    for (std::uint32_t index = 0; index < cluster.topology.link_count(); ++index) {
      const Link& link = cluster.topology.link(LinkId(index));
      const bool is_trunk = cluster.topology.node(link.source).kind == NodeKind::Switch &&
                            cluster.topology.node(link.target).kind == NodeKind::Switch;
      if (is_trunk && random.below(share) == 0) {
        missing.insert(LinkId(index));
      }
    }
    INFO(shape.text() << ", seed " << seed << ", " << missing.size() << " missing");
    const Topology broken =
        without_links(cluster.topology, [&](LinkId link) { return missing.contains(link); });
    const auto router = make_fabric_router(broken, cluster.routing);
    GeneralRouter general(broken);
    for (const NodeId source : general.endpoints()) {
      for (const NodeId target : general.endpoints()) {
        if (source == target) {
          continue;
        }
        const auto path = fabric_route(*router, cluster.routing, source, target, 3);
        const auto shortest = fabric_route(general, cluster.routing, source, target, 3);
        REQUIRE(path.empty() == shortest.empty());
        REQUIRE((path.empty() || is_walk(broken, source, target, path)));
        REQUIRE(!repeats_a_link(path));
        REQUIRE(path.size() >= shortest.size());
      }
    }
    REQUIRE((missing.empty() || !router->diameter()));
  }
}

}  // namespace
}  // namespace trainyard
