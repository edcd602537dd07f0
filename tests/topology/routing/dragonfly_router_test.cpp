// SPDX-License-Identifier: Apache-2.0
// Routes on dragonflies: minimal ones against a search over all paths of one global link, the
// promises of the others, and with random links missing.
#include "support/catch.h"

#include "topology/routing/dragonfly_router.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/random.h"
#include "support/clusters.h"
#include "topology/routing/general_router.h"

namespace trainyard {
namespace {

struct Shape {
  bool has_spines;
  int groups;
  int leaves;
  int spines;
  int global_links;

  [[nodiscard]] int hosts() const { return groups * leaves; }
  [[nodiscard]] std::uint32_t group_size() const {
    return static_cast<std::uint32_t>(leaves + spines);
  }
  [[nodiscard]] std::string text(const std::string& routing = "ecmp") const {
    const std::string in_group =
        has_spines ? "template: dragonfly-plus, leaves_per_group: " + std::to_string(leaves) +
                         ", spines_per_group: " + std::to_string(spines)
                   : "template: dragonfly, switches_per_group: " + std::to_string(leaves);
    return in_group + ", groups: " + std::to_string(groups) +
           ", endpoints_per_switch: 1, global_links: " + std::to_string(global_links) +
           ", switch: Rosetta, local_cable: 2 m, global_cable: 20 m, routing: " + routing;
  }
};

const std::vector<Shape> kShapes = {{false, 3, 2, 0, 1}, {false, 5, 4, 0, 1}, {false, 4, 3, 0, 3},
                                    {false, 2, 4, 0, 2}, {false, 1, 5, 0, 1}, {false, 6, 1, 0, 1},
                                    {false, 3, 3, 0, 9}, {true, 3, 2, 2, 1},  {true, 4, 3, 2, 2},
                                    {true, 1, 4, 2, 1},  {true, 2, 3, 3, 5}};

// What a path is made of, its ends at endpoints taken off.
struct Parts {
  int hops = 0;
  int global_hops = 0;
};
Parts parts_of(const Cluster& cluster, const Shape& shape, const std::vector<LinkId>& path) {
  Parts parts;
  const std::uint32_t first = cluster.routing.fabric.first_switch.value();
  for (std::size_t hop = 1; hop + 1 < path.size(); ++hop) {
    const Link& link = cluster.topology.link(path[hop]);
    ++parts.hops;
    parts.global_hops += (link.source.value() - first) / shape.group_size() !=
                                 (link.target.value() - first) / shape.group_size()
                             ? 1
                             : 0;
  }
  return parts;
}

// Hops between two leaves by the links that the topology has: within a group one in a full mesh
// and two over a spine; else local, global, local.
int min_hops(const Cluster& cluster, const Shape& shape, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t size = shape.group_size();
  const auto local = [&](std::uint32_t a, std::uint32_t b) {
    const bool both_leaves = a % size < static_cast<std::uint32_t>(shape.leaves) &&
                             b % size < static_cast<std::uint32_t>(shape.leaves);
    return a == b ? 0 : shape.has_spines && both_leaves ? 2 : 1;
  };
  if (from / size == to / size) {
    return local(from, to);
  }
  int min = 99;
  const std::uint32_t first = cluster.routing.fabric.first_switch.value();
  for (std::uint32_t index = 0; index < cluster.topology.link_count(); ++index) {
    const Link& link = cluster.topology.link(LinkId(index));
    if (link.source.value() < first || link.target.value() < first) {
      continue;
    }
    const std::uint32_t a = link.source.value() - first;
    const std::uint32_t b = link.target.value() - first;
    if (a / size == from / size && b / size == to / size) {
      min = std::min(min, local(from, a) + 1 + local(b, to));
    }
  }
  return min;
}

TEST_CASE("minimal routes of a dragonfly are local, global, local, and the shortest such") {
  for (const Shape& shape : kShapes) {
    for (const std::string policy : {"ecmp", "static"}) {
      INFO(shape.text(policy));
      const Cluster cluster = cluster_of(shape.hosts(), 1, shape.text(policy));
      const auto router = make_fabric_router(cluster.topology, cluster.routing);
      REQUIRE(router->endpoints().size() == static_cast<std::size_t>(shape.hosts()));
      int farthest = 0;
      for (std::size_t from = 0; from < router->endpoints().size(); ++from) {
        for (std::size_t to = 0; to < router->endpoints().size(); ++to) {
          if (from == to) {
            continue;
          }
          const NodeId source = router->endpoints()[from];
          const NodeId target = router->endpoints()[to];
          const auto path = fabric_route(*router, cluster.routing, source, target, 5);
          REQUIRE(is_walk(cluster.topology, source, target, path));
          REQUIRE(is_simple(cluster.topology, path));
          const auto leaves = static_cast<std::size_t>(shape.leaves);
          const auto at = [&](std::size_t host) {
            return static_cast<std::uint32_t>(host / leaves * shape.group_size() + host % leaves);
          };
          const Parts parts = parts_of(cluster, shape, path);
          REQUIRE(parts.hops == min_hops(cluster, shape, at(from), at(to)));
          REQUIRE(parts.global_hops == (from / leaves == to / leaves ? 0 : 1));
          farthest = std::max(farthest, parts.hops);
        }
      }
      REQUIRE(router->diameter() == farthest);
    }
  }
}

TEST_CASE("Valiant goes through every other group, and within a group through every switch") {
  const Shape shape{false, 6, 4, 0, 1};
  const Cluster cluster = cluster_of(shape.hosts(), 1, shape.text("valiant"));
  REQUIRE(cluster.routing.fabric.virtual_channels == 3);
  const auto router = make_fabric_router(cluster.topology, cluster.routing);
  std::set<std::uint32_t> groups;
  std::set<NodeId> middles;
  std::vector<std::uint8_t> channels;
  const std::uint32_t first = cluster.routing.fabric.first_switch.value();
  for (std::uint32_t label = 0; label < 400; ++label) {
    const auto path = fabric_route(*router, cluster.routing, router->endpoints()[1],
                                   router->endpoints()[22], label);
    REQUIRE(is_walk(cluster.topology, router->endpoints()[1], router->endpoints()[22], path));
    REQUIRE(is_simple(cluster.topology, path));
    REQUIRE(parts_of(cluster, shape, path).global_hops == 2);
    REQUIRE(parts_of(cluster, shape, path).hops <= 5);
    router->virtual_channels(path, channels);
    REQUIRE(std::ranges::is_sorted(channels.begin(), channels.end() - 1));
    REQUIRE(channels[channels.size() - 2] <= 2);
    for (std::size_t hop = 1; hop < path.size(); ++hop) {
      groups.insert((cluster.topology.link(path[hop]).source.value() - first) / 4);
    }
    const auto inside = fabric_route(*router, cluster.routing, router->endpoints()[0],
                                     router->endpoints()[3], label);
    REQUIRE(parts_of(cluster, shape, inside).global_hops == 0);
    if (inside.size() == 4) {
      middles.insert(cluster.topology.link(inside[1]).target);
    }
  }
  REQUIRE(groups.size() == 6);
  REQUIRE(middles.size() == 2);
}

// One flow from each host of group 0 to its counterpart in group 1: one global link for all of
// them if they go the minimal way.
TEST_CASE("adaptive routing leaves a loaded global link and keeps to an idle one") {
  const Shape shape{false, 8, 8, 0, 1};
  const Cluster cluster = cluster_of(shape.hosts(), 1, shape.text("adaptive"));
  Routing routing(cluster.topology, cluster.routing);
  std::map<LinkId, int> load;
  std::vector<LinkId> path;
  for (int host = 0; host < 8; ++host) {
    const auto source = static_cast<std::size_t>(host);
    for (std::uint32_t label = 0; label < 4; ++label) {
      REQUIRE(routing.route(cluster.gpus[source], cluster.gpus[source + 8], label, path));
      for (const LinkId link : path) {
        ++load[link];
      }
    }
  }
  int max = 0;
  const std::uint32_t first = cluster.routing.fabric.first_switch.value();
  for (const auto& [link, count] : load) {
    const Link& of = cluster.topology.link(link);
    const bool is_global = of.source.value() >= first && of.target.value() >= first &&
                           (of.source.value() - first) / 8 != (of.target.value() - first) / 8;
    max = is_global ? std::max(max, count) : max;
  }
  REQUIRE(max < 16);  // Of 32 flows.
  Routing idle(cluster.topology, cluster.routing);
  REQUIRE(idle.route(cluster.gpus[0], cluster.gpus[63], 0, path));
  // GPU, CPU, memory, CPU, NIC, switch; local, global, local; and back.
  REQUIRE(path.size() <= 5 + 3 + 5);
}

TEST_CASE("with links missing a dragonfly is routed where it is still joined") {
  RandomStream random(1, "missing links");
  for (int seed = 0; seed < 120; ++seed) {
    const Shape& shape = kShapes[random.below(kShapes.size())];
    const std::string policies[] = {"ecmp", "valiant", "adaptive"};
    const Cluster cluster = cluster_of(shape.hosts(), 1, shape.text(policies[random.below(3)]));
    const std::uint64_t share = 2 + random.below(10);
    const Topology broken = without_links(cluster.topology, [&](LinkId id) {
      const Link& link = cluster.topology.link(id);
      return cluster.topology.node(link.source).kind == NodeKind::Switch &&
             cluster.topology.node(link.target).kind == NodeKind::Switch &&
             random.below(share) == 0;
    });
    INFO(shape.text() << ", seed " << seed);
    const auto router = make_fabric_router(broken, cluster.routing);
    GeneralRouter general(broken);
    for (const NodeId source : general.endpoints()) {
      for (const NodeId target : general.endpoints()) {
        if (source == target) {
          continue;
        }
        const auto path = fabric_route(*router, cluster.routing, source, target, 3);
        REQUIRE(path.empty() == fabric_route(general, cluster.routing, source, target, 3).empty());
        REQUIRE((path.empty() || is_walk(broken, source, target, path)));
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
