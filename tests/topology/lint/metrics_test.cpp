// SPDX-License-Identifier: Apache-2.0
// Cuts, diameters and tiers against their formulas.
#include "support/catch.h"

#include "topology/lint/metrics.h"

#include "support/built_clusters.h"
#include "topology/routing/dragonfly_router.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::int64_t kGigabit = 1'000'000'000;

LinkSpec rate_metrics(std::int64_t gigabits) {
  return fabric_link(gigabits_per_second(gigabits), 100_ns);
}

std::vector<CutBandwidth> cuts_of(const Cluster& cluster) {
  return cut_bandwidths(cluster, SwitchGraph(cluster.topology));
}

std::optional<Diameter> diameter_of(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  return find_diameter(SwitchGraph(cluster.topology), routing);
}

}  // namespace

TEST_CASE("one switch passes half of what its hosts inject") {
  const auto cuts = cuts_of(cluster_of(one_switch(6, rate_metrics(100))));
  REQUIRE(cuts.size() == 1);
  REQUIRE(cuts[0].name == "servers 0 to 2 and the rest");
  REQUIRE(cuts[0].bits_per_second == 3 * 100 * kGigabit);
  REQUIRE(cuts[0].injection_bits_per_second == 3 * 100 * kGigabit);
}

TEST_CASE("a Clos passes the uplinks of half of its leaves, at most what is injected") {
  for (const int spines : {1, 2, 3, 4, 8}) {
    for (const std::int64_t trunk : {50, 100, 400}) {
      const Cluster cluster = cluster_of(clos({.leaves = 6, .hosts_per_leaf = 4, .spines = spines},
                                              rate_metrics(100), rate_metrics(trunk)));
      const auto cuts = cuts_of(cluster);
      const std::int64_t injected = 3 * 4 * 100 * kGigabit;
      REQUIRE(cuts[0].injection_bits_per_second == injected);
      REQUIRE(cuts[0].bits_per_second == std::min(injected, 3 * spines * trunk * kGigabit));
    }
  }
}

TEST_CASE("a cut through one leaf loads it on both sides") {
  // Three leaves of two hosts: the halves share the leaf in the middle, which needs no trunk for
  // its own two.
  const Cluster cluster = cluster_of(
      clos({.leaves = 3, .hosts_per_leaf = 2, .spines = 1}, rate_metrics(100), rate_metrics(20)));
  // 100 from host 2 to host 3 below the leaf; 20 by the trunk of leaf 0.
  REQUIRE(cuts_of(cluster)[0].bits_per_second == 120 * kGigabit);
}

TEST_CASE("a torus passes two planes of links, the fewest across its longest dimension") {
  for (const std::vector<int>& dimensions :
       {std::vector<int>{4, 4}, {8, 4}, {4, 6, 8}, {16}, {8, 8, 8}}) {
    int hosts = 1;
    int longest = 1;
    for (const int size : dimensions) {
      hosts *= size;
      longest = std::max(longest, size);
    }
    const auto cuts = cuts_of(torus(dimensions, rate_metrics(10'000), rate_metrics(400)));
    REQUIRE(cuts.size() == 1 + dimensions.size());
    REQUIRE(cuts[0].bits_per_second == 2 * (hosts / longest) * 400 * kGigabit);
    REQUIRE(cuts[0].injection_bits_per_second == hosts / 2 * 10'000 * kGigabit);
    for (const CutBandwidth& cut : cuts) {
      for (std::size_t dimension = 0; dimension < dimensions.size(); ++dimension) {
        if (cut.name.starts_with("dimension " + std::to_string(dimension))) {
          REQUIRE(cut.bits_per_second == 2 * (hosts / dimensions[dimension]) * 400 * kGigabit);
        }
      }
    }
  }
}

TEST_CASE("a dragonfly is cut between its groups") {
  // Four groups of two switches; between each pair of groups one link, here all by switch 0.
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> switches;
  for (int index = 0; index < 8; ++index) {
    switches.push_back(add_switch(builder, "switch " + std::to_string(index)));
  }
  for (const NodeId node : switches) {
    builder.add_duplex_link(add_host(builder, hosts), node, rate_metrics(1000));
  }
  for (std::size_t group = 0; group < 4; ++group) {
    builder.add_duplex_link(switches[2 * group], switches[2 * group + 1], rate_metrics(5000));
    for (std::size_t other = group + 1; other < 4; ++other) {
      builder.add_duplex_link(switches[2 * group], switches[2 * other], rate_metrics(100));
    }
  }
  Cluster cluster =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
  cluster.routing.fabric = {.router = make_router<DragonflyRouter>,
                            .first_switch = switches[0],
                            .switches = 8,
                            .group_size = 2};
  const auto cuts = cuts_of(cluster);
  REQUIRE(cuts.size() == 2);
  // Two groups by two groups.
  REQUIRE(cuts[1].name == "groups 0 to 1 and the rest");
  REQUIRE(cuts[1].bits_per_second == 4 * 100 * kGigabit);
}

TEST_CASE("one server has no bisection") {
  REQUIRE(cuts_of(cluster_of(one_switch(1, rate_metrics(100)))).empty());
}

TEST_CASE("the diameter is the longest of the shortest paths between leaves") {
  REQUIRE(!diameter_of(cluster_of(one_switch(4, rate_metrics(100)))));
  REQUIRE(diameter_of(cluster_of(clos({.leaves = 4, .hosts_per_leaf = 1, .spines = 2},
                                      rate_metrics(100), rate_metrics(100))))
              ->links == 2);
  REQUIRE(diameter_of(cluster_of(switch_row(rate_metrics(100),
                                            std::vector<LinkSpec>(5, rate_metrics(100)))))
              ->links == 5);
  // Half the size of each dimension.
  const auto found = diameter_of(torus({8, 6, 4}, rate_metrics(100), rate_metrics(100)));
  REQUIRE(found->links == 4 + 3 + 2);
  REQUIRE(!found->at_least);
}

TEST_CASE("tiers say what goes down and up, and where it is worst") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId even = add_switch(builder, "even");
  const NodeId odd = add_switch(builder, "odd");
  const NodeId spine = add_switch(builder, "spine");
  for (int host = 0; host < 4; ++host) {
    builder.add_duplex_link(add_host(builder, hosts), even, rate_metrics(100));
    builder.add_duplex_link(add_host(builder, hosts), odd, rate_metrics(100));
  }
  builder.add_duplex_link(even, spine, rate_metrics(400));
  builder.add_duplex_link(odd, spine, rate_metrics(200));
  const Topology topology = std::move(builder).build();
  const auto tiers = tier_loads(SwitchGraph(topology));
  REQUIRE(tiers.size() == 2);
  REQUIRE(tiers[0].switches == 2);
  REQUIRE(tiers[0].min_oversubscription == 1.0);
  REQUIRE(tiers[0].max_oversubscription == 2.0);
  REQUIRE(tiers[0].worst == odd);
  REQUIRE(tiers[0].down_bits_per_second == 400 * kGigabit);
  REQUIRE(tiers[0].up_bits_per_second == 200 * kGigabit);
  REQUIRE(tiers[1].max_oversubscription == 0.0);
  REQUIRE(tiers[1].down_bits_per_second == 600 * kGigabit);
}

}  // namespace trainyard
