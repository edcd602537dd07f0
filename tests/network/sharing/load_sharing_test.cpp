// SPDX-License-Identifier: Apache-2.0
// Against a filling that takes small steps, and for what must not matter.
#include "support/catch.h"

#include "network/sharing/load_sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/random.h"
#include "support/clusters.h"
#include "support/effort.h"

namespace trainyard {
namespace {

// Devices in a row, joined by links of 100, 200, ... Gb/s.
Topology row_of_links(int links) {
  TopologyBuilder builder;
  NodeId last = builder.add_node({.kind = NodeKind::Switch, .name = "0"});
  for (int link = 0; link < links; ++link) {
    const NodeId next = builder.add_node({.kind = NodeKind::Switch, .name = "next"});
    const Bandwidth rate(std::int64_t{100'000'000'000} * (link + 1));
    static_cast<void>(builder.add_link(last, next, {.bandwidth = rate}));
    last = next;
  }
  return std::move(builder).build();
}

Load load_on(std::initializer_list<std::pair<std::uint32_t, double>> weights) {
  Load load;
  for (const auto& [link, weight] : weights) {
    load.push_back({.link = LinkId(link), .weight = weight});
  }
  merge(load);
  return load;
}

std::vector<Load> random_loads(RandomStream& random, int loads, std::uint32_t first,
                               std::uint32_t links) {
  std::vector<Load> made(static_cast<std::size_t>(loads));
  for (Load& load : made) {
    const std::uint64_t crossed = 1 + random.below(4);
    for (std::uint64_t i = 0; i < crossed; ++i) {
      const auto link = first + static_cast<std::uint32_t>(random.below(links));
      const double weight = 0.25 * static_cast<double>(1 + random.below(8));
      load.push_back({.link = LinkId(link), .weight = weight});
    }
    merge(load);
  }
  return made;
}

double used(const std::vector<Load>& loads, const std::vector<double>& rates, LinkId link) {
  double sum = 0.0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    for (const LinkWeight& one : loads[i]) {
      sum += one.link == link ? one.weight * rates[i] : 0.0;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("loads share links by their weights", "[load_sharing]") {
  const Topology topology = row_of_links(3);
  // The first link has 100 Gb/s: three quarters of it for a load that crosses it three times.
  const std::vector<Load> both{load_on({{0, 1.0}}), load_on({{0, 2.0}, {0, 1.0}, {1, 1.0}})};
  REQUIRE(both[1].size() == 2);
  std::vector<double> rates = shared_rates(topology, both);
  REQUIRE(rates[0] == Approx(25e9));
  REQUIRE(rates[1] == Approx(25e9));
  // A load that is limited elsewhere leaves more to the others.
  const std::vector<Load> three{
      load_on({{0, 1.0}, {1, 1.0}}), load_on({{1, 1.0}}), load_on({{2, 1.0}}), {}};
  rates = shared_rates(topology, three);
  REQUIRE(rates[0] == Approx(100e9));
  REQUIRE(rates[1] == Approx(100e9));
  REQUIRE(rates[2] == Approx(300e9));
  REQUIRE(std::isinf(rates[3]));
}

TEST_CASE("rates are max-min fair", "[load_sharing][property]") {
  constexpr std::uint32_t kLinks = 6;
  const Topology topology = row_of_links(kLinks);
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "load sharing");
    const std::vector<Load> loads = random_loads(random, 8, 0, kLinks);
    const std::vector<double> rates = shared_rates(topology, loads);
    std::vector<bool> is_full;
    for (std::uint32_t link = 0; link < kLinks; ++link) {
      const auto capacity =
          static_cast<double>(topology.link(LinkId(link)).spec.bandwidth.bits_per_second());
      const double use = used(loads, rates, LinkId(link));
      REQUIRE(use <= capacity * (1.0 + 1e-9));
      is_full.push_back(use >= capacity * (1.0 - 1e-9));
    }
    // Each has a full link on which none is faster.
    for (std::size_t i = 0; i < loads.size(); ++i) {
      REQUIRE(std::any_of(loads[i].begin(), loads[i].end(), [&](const LinkWeight& one) {
        double fastest = 0.0;
        for (std::size_t j = 0; j < loads.size(); ++j) {
          if (std::any_of(loads[j].begin(), loads[j].end(),
                          [&](const LinkWeight& other) { return other.link == one.link; })) {
            fastest = std::max(fastest, rates[j]);
          }
        }
        return is_full[one.link.value()] && rates[i] >= fastest * (1.0 - 1e-9);
      }));
    }
  }
}

TEST_CASE("what is not connected does not change a bit of a rate", "[load_sharing][property]") {
  const Topology topology = row_of_links(8);
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "load sharing");
    const std::vector<Load> own = random_loads(random, 5, 0, 4);
    const std::vector<Load> others = random_loads(random, 5, 4, 4);
    std::vector<Load> all;
    for (std::size_t i = 0; i < own.size(); ++i) {
      all.push_back(others[i]);
      all.push_back(own[i]);
    }
    const std::vector<double> alone = shared_rates(topology, own);
    const std::vector<double> beside = shared_rates(topology, all);
    for (std::size_t i = 0; i < own.size(); ++i) {
      REQUIRE(beside[2 * i + 1] == alone[i]);
    }
    const std::vector<GroupClass> each{{.groups = {0}}, {.groups = {1}}};
    for (const GroupShare& share : group_shares(topology, std::vector{own, others}, each)) {
      REQUIRE(!share.is_limited);
      REQUIRE(share.share == 1.0);
      REQUIRE(share.left.empty());
    }
  }
}

TEST_CASE("the slowest of groups that share a link counts", "[load_sharing]") {
  const Topology topology = row_of_links(3);
  const std::vector<std::vector<Load>> groups{
      {load_on({{2, 1.0}})}, {load_on({{0, 1.0}, {2, 1.0}})}, {load_on({{0, 1.0}})}};
  const std::vector<GroupShare> shares = group_shares(
      topology, groups,
      std::vector<GroupClass>{
          {.groups = {0, 1, 2}}, {.groups = {0}}, {.groups = {0}, .sees_fabric = SeesFabric::No}});
  const GroupShare& share = shares[0];
  REQUIRE(share.group == 1);
  REQUIRE(share.is_limited);
  REQUIRE(share.limits == std::vector{50e9});
  REQUIRE(share.share == Approx(0.5));
  // Of the third link the first group takes the 250 Gb/s that the slowest leaves.
  REQUIRE(share.left == std::vector{std::pair(LinkId(0), Bandwidth(50'000'000'000)),
                                    std::pair(LinkId(2), Bandwidth(50'000'000'000))});
  // A class of its own has what the slowest leaves.
  REQUIRE(shares[1].group == 0);
  REQUIRE(shares[1].limits == std::vector{250e9});
  // Links between switches are all there are: a model that does not see them has no limit alone.
  REQUIRE(shares[2].is_limited);
}

TEST_CASE("switches that spread packets load all ways evenly", "[load_sharing]") {
  const auto weights = [](const char* const policy) {
    const Cluster cluster = cluster_of(
        4, 1,
        std::string("template: clos, leaf: Quantum2-QM9700, spine: Quantum2-QM9700, cable: 10 m, "
                    "nodes_per_leaf: 2, routing: ") +
            policy);
    Routing routing(cluster.topology, cluster.routing);
    ConnectionLoads connections(routing);
    Load load;
    REQUIRE(connections.add({.source = cluster.gpus[0], .target = cluster.gpus[2]}, 1.0, load));
    merge(load);
    std::vector<double> between;
    for (const LinkWeight& one : load) {
      const Link& link = cluster.topology.link(one.link);
      if (!cluster.topology.node(link.source).server &&
          !cluster.topology.node(link.target).server) {
        between.push_back(one.weight);
      } else {
        REQUIRE(one.weight == Approx(1.0));
      }
    }
    return between;
  };
  REQUIRE(weights("ecmp") == std::vector<double>(2, 1.0));
  for (const char* const policy : {"adaptive", "spray"}) {
    const std::vector<double> spread = weights(policy);
    REQUIRE(spread.size() > 2);
    for (const double weight : spread) {
      REQUIRE(weight == Approx(2.0 / static_cast<double>(spread.size())));
    }
  }
}

TEST_CASE("a sum of loads is what merging them all gives, bit for bit", "[load_sharing]") {
  constexpr std::uint32_t kLinks = 12;
  TopologyBuilder builder;
  NodeId last = builder.add_node({.kind = NodeKind::Switch, .name = "first"});
  for (std::uint32_t link = 0; link < kLinks; ++link) {
    const NodeId next = builder.add_node({.kind = NodeKind::Switch, .name = "next"});
    static_cast<void>(builder.add_link(last, next, {.bandwidth = gigabits_per_second(100)}));
    last = next;
  }
  const Topology topology = std::move(builder).build();
  RandomStream random(1, "load sum test");
  for (int round = 0; round < 50; ++round) {
    LoadSum sum(topology);
    Load all;
    for (int load = 0; load < 40; ++load) {
      Load one;
      for (std::uint64_t crossed = random.below(5); crossed > 0; --crossed) {
        const auto link = static_cast<std::uint32_t>(2 + random.below(7));
        const double weight = 1.0 / (1.0 + static_cast<double>(random.below(9)));
        one.push_back({.link = LinkId(link), .weight = weight});
      }
      sum.add(one);
      all.insert(all.end(), one.begin(), one.end());
    }
    merge(all);
    const Load total = sum.total();
    REQUIRE(total.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(total[i].link == all[i].link);
      REQUIRE(total[i].weight == all[i].weight);
    }
  }
}

}  // namespace trainyard
