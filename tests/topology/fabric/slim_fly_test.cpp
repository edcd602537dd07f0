// SPDX-License-Identifier: Apache-2.0
// Slim Flies against the numbers that their papers give, routes against a search over the cables.
#include "support/catch.h"

#include "topology/fabric/slim_fly.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/clusters.h"
#include "support/dependencies.h"
#include "topology/graph/switch_graph.h"
#include "topology/lint/metrics.h"
#include "topology/routing/general_router.h"

namespace trainyard {
namespace {

const std::string kFlyParts = ", switch: Quantum2-QM9700, local_cable: 2 m, global_cable: 10 m";

std::string slim_fly(int q, const std::string& more = "") {
  return "template: slim-fly, q: " + std::to_string(q) + kFlyParts + more;
}

// One endpoint on each switch.
Cluster bare(int q, const std::string& more = "") {
  return cluster_of(2 * q * q, 1, slim_fly(q, ", endpoints_per_switch: 1" + more));
}

// By switch, those that it has a cable to.
std::vector<std::set<std::uint32_t>> neighbours(const Cluster& cluster) {
  const FabricShape& shape = cluster.routing.fabric;
  std::vector<std::set<std::uint32_t>> found(shape.switches);
  for (std::uint32_t at = 0; at < shape.switches; ++at) {
    for (const LinkId id : cluster.topology.links_from(NodeId(shape.first_switch.value() + at))) {
      const NodeId target = cluster.topology.link(id).target;
      if (cluster.topology.node(target).kind == NodeKind::Switch) {
        REQUIRE(found[at].insert(target.value() - shape.first_switch.value()).second);
      }
    }
  }
  return found;
}

std::size_t common(const std::set<std::uint32_t>& a, const std::set<std::uint32_t>& b) {
  return static_cast<std::size_t>(
      std::ranges::count_if(a, [&](std::uint32_t each) { return b.contains(each); }));
}

TEST_CASE("a slim fly has 2 q^2 switches of degree (3 q - delta) / 2, two cables apart at most") {
  struct Size {
    int q;
    std::size_t degree;
  };
  for (const auto& [q, degree] : {Size{3, 5}, Size{4, 6}, Size{5, 7}, Size{7, 11}, Size{8, 12},
                                  Size{9, 13}, Size{11, 17}, Size{13, 19}}) {
    INFO("q = " << q);
    const Cluster cluster = bare(q);
    const auto joined = neighbours(cluster);
    REQUIRE(joined.size() == static_cast<std::size_t>(2 * q * q));
    for (std::size_t from = 0; from < joined.size(); ++from) {
      REQUIRE(joined[from].size() == degree);
      for (std::uint32_t to = 0; to < from; ++to) {
        const bool is_near = joined[from].contains(to) || common(joined[from], joined[to]) > 0;
        if (!is_near) {
          FAIL("more than two cables between " << from << " and " << to);
        }
      }
    }
    Routing routing(cluster.topology, cluster.routing);
    REQUIRE(find_diameter(SwitchGraph(cluster.topology), routing)->links == 2);
  }
}

// 50 switches and 200 servers are deployed (Blach et al., NSDI '24); 722 switches of degree 29 with
// 15 endpoints each, 10,830 in all, are the example of Besta and Hoefler, SC '14.
TEST_CASE("slim flies have their published numbers of endpoints") {
  REQUIRE_NOTHROW(cluster_of(200, 1, slim_fly(5)));
  REQUIRE_THROWS_WITH(cluster_of(201, 1, slim_fly(5)),
                      Catch::Contains("my.yaml:3:8: nodes: at most 200 NICs fit 50 switches of 4, "
                                      "found 201: lower nodes or enlarge fabric.q"));
  REQUIRE_THROWS_WITH(cluster_of(10831, 1, slim_fly(19)),
                      Catch::Contains("at most 10830 NICs fit 722 switches of 15"));
}

// The only graph of degree 7 and diameter 2 with 50 nodes (Hoffman and Singleton, On Moore graphs
// with diameters 2 and 3, 1960): neighbours have none in common, all others one.
TEST_CASE("the slim fly of q = 5 is the Hoffman-Singleton graph") {
  const auto joined = neighbours(bare(5));
  for (std::size_t from = 0; from < joined.size(); ++from) {
    for (std::uint32_t to = 0; to < from; ++to) {
      REQUIRE(common(joined[from], joined[to]) == (joined[from].contains(to) ? 0U : 1U));
    }
  }
}

TEST_CASE("q^3 cables join the halves of a slim fly, whatever q is") {
  const Cluster cluster = bare(7);
  const auto cuts = cut_bandwidths(cluster, SwitchGraph(cluster.topology));
  const auto halves = std::ranges::find(cuts, "group 0 and the rest", &CutBandwidth::name);
  REQUIRE(halves != cuts.end());
  // With one endpoint on each switch the endpoints are the limit: 98 of 343 cables' worth.
  REQUIRE(halves->bits_per_second == halves->injection_bits_per_second);
  std::size_t across = 0;
  const auto joined = neighbours(cluster);
  for (std::size_t from = 0; from < 49; ++from) {
    across += static_cast<std::size_t>(
        std::ranges::count_if(joined[from], [](std::uint32_t to) { return to >= 49; }));
  }
  REQUIRE(across == 343);
}

TEST_CASE("routes of a slim fly are as long as a search finds, and take every equal path") {
  for (const int q : {5, 7, 8}) {
    const Cluster cluster = bare(q);
    const auto joined = neighbours(cluster);
    const auto router = make_fabric_router(cluster.topology, cluster.routing);
    const std::vector<NodeId>& endpoints = router->endpoints();
    for (std::size_t from = 0; from < endpoints.size(); ++from) {
      for (std::uint32_t to = 0; to < endpoints.size(); ++to) {
        if (from == to) {
          continue;
        }
        const auto path = fabric_route(*router, cluster.routing, endpoints[from], endpoints[to], 0);
        REQUIRE(path.size() == (joined[from].contains(to) ? 3U : 4U));
        std::vector<std::uint8_t> channels;
        router->virtual_channels(path, channels);
        REQUIRE(channels[path.size() - 2] == 1);
        REQUIRE(channels[1] == (path.size() == 3 ? 1 : 0));
      }
    }
    // Of two switches that are not joined, one flow in time passes each common neighbour.
    std::uint32_t far = 1;
    while (joined[0].contains(far)) {
      ++far;
    }
    std::set<LinkId> first_hops;
    for (std::uint32_t label = 0; label < 400; ++label) {
      first_hops.insert(
          fabric_route(*router, cluster.routing, endpoints[0], endpoints[far], label)[1]);
    }
    REQUIRE(first_hops.size() == common(joined[0], joined[far]));
  }
}

TEST_CASE("two virtual channels keep a slim fly free of deadlock, one does not") {
  for (const int q : {4, 5, 7}) {
    for (const char* const policy : {"ecmp", "static", "adaptive", "spray"}) {
      const Cluster cluster = bare(q, std::string(", routing: ") + policy);
      REQUIRE(cluster.routing.fabric.virtual_channels == 2);
      const auto router = make_fabric_router(cluster.topology, cluster.routing);
      REQUIRE(stated_cycle(cluster.topology, *router, cluster.routing).empty());
      REQUIRE(routed_cycle(cluster.topology, *router, cluster.routing, 2).empty());
    }
    const Cluster one = bare(q, ", virtual_channels: 1");
    const auto router = make_fabric_router(one.topology, one.routing);
    REQUIRE_FALSE(stated_cycle(one.topology, *router, one.routing).empty());
  }
}

TEST_CASE("cables in a rack and between racks have their lengths") {
  const Cluster cluster = bare(5);
  const auto latency = [&](const char* from, const char* to) {
    const NodeId target = *cluster.topology.find(to);
    for (const LinkId id : cluster.topology.links_from(*cluster.topology.find(from))) {
      if (cluster.topology.link(id).target == target) {
        return cluster.topology.link(id).spec.latency;
      }
    }
    return SimTime();
  };
  // 0 = 0 * 0 + 0, and 0 = 0 * 1 + 0. Light takes 5 ns a metre of fibre.
  REQUIRE(latency("s0,0,0", "s1,0,0") > SimTime());
  REQUIRE(latency("s0,0,0", "s1,1,0") - latency("s0,0,0", "s1,0,0") == nanoseconds(40));
}

TEST_CASE("a slim fly that cannot be is refused in one line") {
  for (const int q : {6, 10, 12, 15, 63}) {
    REQUIRE_THROWS_WITH(cluster_of(1, 1, slim_fly(q)),
                        Catch::Contains("fabric.q: expected a prime or a power of one, such as 5, "
                                        "7, 8, 9, 11 or 13, found \"" +
                                        std::to_string(q) + "\""));
  }
  REQUIRE_THROWS_WITH(cluster_of(1, 1, slim_fly(2)), Catch::Contains("fabric.q: expected"));
  REQUIRE_THROWS_WITH(cluster_of(1, 1, slim_fly(29)),
                      Catch::Contains("Quantum2-QM9700 has 64 ports, and 65 are needed: 22 for "
                                      "endpoints, 43 for other switches"));
  REQUIRE_THROWS_WITH(cluster_of(1, 1, slim_fly(5, ", routing: valiant")),
                      Catch::Contains("fabric.routing: expected a policy of this template"));
  REQUIRE_THROWS_WITH(cluster_of(1, 0, slim_fly(5, ", attach: gpu")),
                      Catch::Contains("fabric.attach: expected nic"));
}

}  // namespace
}  // namespace trainyard
