// SPDX-License-Identifier: Apache-2.0
// The size of dragonflies by formula, against published systems, and what mistakes say.
#include "support/catch.h"

#include "topology/fabric/dragonfly.h"

#include <string>
#include <vector>

#include "support/clusters.h"

namespace trainyard {
namespace {

const std::string kParts = ", switch: Rosetta, local_cable: 2 m, global_cable: 20 m";

std::string mesh(int groups, int switches, int endpoints, const std::string& global) {
  return "template: dragonfly, groups: " + std::to_string(groups) +
         ", switches_per_group: " + std::to_string(switches) +
         ", endpoints_per_switch: " + std::to_string(endpoints) + ", global_links: " + global +
         kParts;
}

// Trunks by kind, each direction counted, and the most global links of a switch.
struct Count {
  int local = 0;
  int global = 0;
  int cut = 0;  // Between the first half of the groups and the rest.
  int min_global = 1 << 30;
  int max_global = 0;
};
Count count_trunks(const Cluster& cluster, int groups) {
  const FabricShape& shape = cluster.routing.fabric;
  Count count;
  for (std::uint32_t at = 0; at < shape.switches; ++at) {
    int own = 0;
    for (const LinkId id : cluster.topology.links_from(NodeId(shape.first_switch.value() + at))) {
      const NodeId target = cluster.topology.link(id).target;
      if (cluster.topology.node(target).kind != NodeKind::Switch) {
        continue;
      }
      const int from = static_cast<int>(at / shape.group_size);
      const int to =
          static_cast<int>((target.value() - shape.first_switch.value()) / shape.group_size);
      (from == to ? count.local : count.global) += 1;
      own += from == to ? 0 : 1;
      count.cut += from < groups / 2 && to >= groups / 2 ? 1 : 0;
    }
    count.min_global = std::min(count.min_global, own);
    count.max_global = std::max(count.max_global, own);
  }
  return count;
}

TEST_CASE("a dragonfly has the links that its numbers say, dealt evenly over the switches") {
  for (const int groups : {1, 2, 3, 6, 9}) {
    for (const int switches : {1, 2, 4, 5}) {
      for (const int bundles : {1, 2, 3}) {
        for (const int bundle : {1, 2}) {
          const Cluster cluster = cluster_of(
              groups * switches, 2,
              mesh(groups, switches, 2,
                   std::to_string(bundles * bundle) + ", bundle: " + std::to_string(bundle)));
          INFO(groups << " groups of " << switches << ", " << bundles << " bundles");
          const Count count = count_trunks(cluster, groups);
          REQUIRE(switch_count(cluster.topology) == static_cast<std::uint32_t>(groups * switches));
          REQUIRE(count.local == groups * switches * (switches - 1));
          REQUIRE(count.global == groups * (groups - 1) * bundles * bundle);
          REQUIRE(count.cut == groups / 2 * (groups - groups / 2) * bundles * bundle);
          REQUIRE(count.max_global - count.min_global <= bundle);
        }
      }
    }
  }
}

TEST_CASE("a dragonfly+ joins leaves to spines and spines to spines of other groups") {
  for (const int groups : {1, 3, 5}) {
    const int leaves = 4;
    const int spines = 3;
    const Cluster cluster = cluster_of(
        groups * leaves, 1,
        "template: dragonfly-plus, groups: " + std::to_string(groups) +
            ", leaves_per_group: 4, spines_per_group: 3, endpoints_per_switch: 1, global_links: 2" +
            kParts);
    const Count count = count_trunks(cluster, groups);
    REQUIRE(count.local == 2 * groups * leaves * spines);
    REQUIRE(count.global == groups * (groups - 1) * 2);
    REQUIRE(cluster.topology.find("g0leaf3"));
    REQUIRE(cluster.topology.find("g0spine2"));
  }
}

// 74 compute groups of 32 switches, 16 endpoints each, 4 links a pair in bundles of two: 2,368
// switches, 292 global links a group (public description of the layout of Frontier's network).
TEST_CASE("the compute groups of Frontier have their published counts") {
  const Cluster cluster = cluster_of(128, 4, mesh(74, 32, 16, "4, bundle: 2"));
  REQUIRE(switch_count(cluster.topology) == 2368);
  const Count count = count_trunks(cluster, 74);
  REQUIRE(count.global == 74 * 292);
  REQUIRE(count.local == 74 * 32 * 31);
  REQUIRE(count.max_global <= 17);
}

TEST_CASE("545 groups of 32 switches are the most that 64 ports allow") {
  REQUIRE_NOTHROW(cluster_of(1, 1, mesh(545, 32, 16, "1")));
  REQUIRE_THROWS_WITH(cluster_of(1, 1, mesh(546, 32, 16, "1")),
                      Catch::Contains("Rosetta has 64 ports, and a switch needs 65: 16 for "
                                      "endpoints, 31 local, 18 global"));
}

TEST_CASE("numbers of a dragonfly that do not fit are refused") {
  REQUIRE_THROWS_WITH(cluster_of(13, 1, mesh(3, 4, 1, "1")),
                      Catch::Contains("my.yaml:3:8: nodes: at most 12 NICs fit 3 groups of 4 "
                                      "switches of 1, found 13"));
  REQUIRE_THROWS_WITH(cluster_of(2, 1, mesh(3, 4, 1, "3, bundle: 2")),
                      Catch::Contains("fabric.global_links: expected a multiple of the 2 links of "
                                      "a bundle, found \"3\""));
  REQUIRE_THROWS_WITH(cluster_of(2, 0, mesh(3, 4, 1, "1, attach: gpu")),
                      Catch::Contains("fabric.attach: expected nic"));
}

}  // namespace
}  // namespace trainyard
