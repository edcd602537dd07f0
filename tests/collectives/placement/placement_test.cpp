// SPDX-License-Identifier: Apache-2.0
// Channels on the shipped clusters: rings along NVLinks, and every NIC used alike.
#include "support/catch.h"

#include "collectives/placement/placement.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/servers.h"

namespace trainyard {
namespace {

const std::filesystem::path kConfigs = source_dir() / "configs";

Cluster load(const std::string& name, int nodes, std::optional<int> gpus_per_node = {}) {
  static const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  return load_cluster(kConfigs / "clusters" / (name + ".yaml"), catalogue,
                      {.nodes = nodes, .gpus_per_node = gpus_per_node});
}

Placement place_on(const Cluster& cluster, Algorithm algorithm, std::optional<int> channels = {}) {
  return place(cluster, Routing(cluster.topology, cluster.routing), algorithm, channels);
}

bool directly_joined(const Cluster& cluster, int a, int b) {
  const auto node_of = [&](int gpu) { return cluster.gpus[static_cast<std::size_t>(gpu)]; };
  return std::ranges::any_of(cluster.topology.links_from(node_of(a)), [&](LinkId link) {
    return cluster.topology.link(link).target == node_of(b);
  });
}

TEST_CASE("ranks are the GPUs of the cluster, server by server") {
  const Cluster cluster = load("dgx-h100", 2);
  const Placement placement = place_on(cluster, &kRing);
  REQUIRE(placement.nodes == cluster.gpus);
  REQUIRE(placement.options.layout.nodes() == 2);
  REQUIRE(placement.options.layout.max_ranks_per_node() == 8);
  REQUIRE(placement.options.layout.ranks() == 16);
}

TEST_CASE("on the cube mesh the channels are its six rings, along NVLinks all the way") {
  const Cluster cluster = load("dgx-1", 1);
  for (const Algorithm algorithm : {&kRing, &kTree}) {
    const Placement placement = place_on(cluster, algorithm);
    REQUIRE(placement.remarks.empty());
    REQUIRE(placement.options.layout.channels() == 6);
    REQUIRE(placement.options.layout.chain_in_single_node);
    for (const std::vector<int>& order : placement.options.layout.kinds.at(0)) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        REQUIRE(directly_joined(cluster, order[i], order[(i + 1) % order.size()]));
      }
    }
  }
}

TEST_CASE("part of a mesh that has no ring is visited in natural order, with a remark") {
  // GPU 4 is joined to GPU 0 alone among the first five.
  const Placement placement = place_on(load("dgx-1", 1, 5), &kRing);
  REQUIRE(placement.options.layout.kinds.at(0) ==
          std::vector<std::vector<int>>(2, std::vector<int>{0, 1, 2, 3, 4}));
  REQUIRE_FALSE(placement.options.layout.chain_in_single_node);
  REQUIRE(placement.remarks ==
          std::vector<std::string>{
              "the direct links between the GPUs of a node form no ring: the channels visit the "
              "GPUs in their natural order, in part over PCIe"});
}

TEST_CASE("behind an NVSwitch two channels visit the GPUs in natural order") {
  const Placement placement = place_on(load("dgx-h100", 1), &kTree);
  REQUIRE(placement.options.layout.kinds.at(0) ==
          std::vector<std::vector<int>>(2, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  REQUIRE_FALSE(placement.options.layout.chain_in_single_node);
  REQUIRE(placement.remarks.empty());
}

TEST_CASE("over several nodes as many channels enter and leave at each NIC") {
  for (const char* name : {"dgx-1", "dgx-h100"}) {
    const Cluster cluster = load(name, 2);
    const Placement placement = place_on(cluster, &kRing);
    INFO(name);
    REQUIRE(placement.options.layout.alternate);
    const int channels = placement.options.layout.channels();
    const int nics = cluster.nics_per_node;
    REQUIRE(channels % nics == 0);
    std::vector<int> entering(static_cast<std::size_t>(nics), 0);
    std::vector<int> leaving = entering;
    for (const std::vector<int>& order : placement.options.layout.kinds.at(0)) {
      ++entering[static_cast<std::size_t>(order.front() * nics / cluster.gpus_per_node)];
      ++leaving[static_cast<std::size_t>(order.back() * nics / cluster.gpus_per_node)];
    }
    const std::vector<int> alike(static_cast<std::size_t>(nics), channels / nics);
    REQUIRE(entering == alike);
    REQUIRE(leaving == alike);
  }
  REQUIRE_FALSE(place_on(load("dgx-h100", 3), &kRing).options.layout.alternate);
}

TEST_CASE("the number of channels can be given, and other algorithms have one a NIC of a GPU") {
  const Cluster cluster = load("dgx-h100", 2);
  REQUIRE(place_on(cluster, &kRing, 3).options.layout.channels() == 3);
  REQUIRE(place_on(load("dgx-1", 1), &kTree, 7).options.layout.channels() == 7);
  for (const Algorithm algorithm : {&kHalvingDoubling, &kPairwise, &kDirect}) {
    REQUIRE(place_on(cluster, algorithm).options.layout.channels() == 1);
    REQUIRE(place_on(cluster, algorithm, 4).options.layout.channels() == 4);
    REQUIRE(place_on(load("aws-p5", 2), algorithm).options.layout.channels() == 4);
    REQUIRE(place_on(load("aws-p5en", 2), algorithm).options.layout.channels() == 2);
    REQUIRE(place_on(load("aws-p5", 1), algorithm).options.layout.channels() == 1);
  }
  // As many for each of its two trees.
  REQUIRE(place_on(load("dgx-h100", 2), &kNvlsTree).options.layout.channels() == 2);
  REQUIRE(place_on(load("aws-p5", 2), &kNvlsTree).options.layout.channels() == 4);
  REQUIRE(place_on(load("aws-p5en", 2), &kNvlsTree).options.layout.channels() == 2);
  REQUIRE(place_on(load("aws-p5", 2), &kNvlsTree, 2).options.layout.channels() == 2);
}

// How many channels enter and leave a node at each of its NICs, which its GPUs share in order.
void require_even_use(const LocalOrders& orders, int nics) {
  const auto gpus = static_cast<int>(orders.front().size());
  std::vector<int> entering(static_cast<std::size_t>(nics), 0);
  std::vector<int> leaving = entering;
  for (const std::vector<int>& order : orders) {
    ++entering[static_cast<std::size_t>(order.front() * nics / gpus)];
    ++leaving[static_cast<std::size_t>(order.back() * nics / gpus)];
  }
  const std::vector<int> alike(entering.size(), static_cast<int>(orders.size()) / nics);
  REQUIRE(entering == alike);
  REQUIRE(leaving == alike);
}

TEST_CASE("servers that differ have orders of their own, and channels use all NICs of each alike") {
  const Cluster cluster = cluster_of({{.gpus = 4, .nics = 4},
                                      {.gpus = 6, .nics = 3},
                                      {.gpus = 4, .nics = 4},
                                      {.gpus = 1, .nics = 1}});
  for (const Algorithm algorithm : {&kRing, &kTree}) {
    const RankLayout layout = place_on(cluster, algorithm).options.layout;
    REQUIRE(layout.node_kinds == std::vector<std::uint32_t>{0, 1, 0, 2});
    REQUIRE(layout.kinds.size() == 3);
    REQUIRE(layout.channels() == 12);  // The least multiple of 4, 3, 1 and the two trees.
    REQUIRE(layout.first_ranks() == std::vector<std::uint32_t>{0, 4, 10, 14, 15});
    require_even_use(layout.kinds[0], 4);
    require_even_use(layout.kinds[1], 3);
    require_even_use(layout.kinds[2], 1);
  }
  REQUIRE(place_on(cluster, &kPairwise).options.layout.ranks() == 15);
  REQUIRE(place_on(cluster, &kRing, 5).options.layout.channels() == 5);
}

TEST_CASE("where no number of channels serves all NICs alike, the fullest has least too much") {
  const Cluster cluster =
      cluster_of({{.gpus = 5, .nics = 5}, {.gpus = 7, .nics = 7}, {.gpus = 8, .nics = 8}});
  // Even use would take 280. With 55 the fullest of 2 trees and 5, 7 and 8 NICs have 28, 11, 8 and
  // 7, at most 56/55 of an even load.
  REQUIRE(place_on(cluster, &kRing).options.layout.channels() == 55);
}

TEST_CASE("NICs are those that the GPUs that take part use") {
  Cluster cluster = cluster_of({{.gpus = 8, .nics = 4}, {.gpus = 8, .nics = 4}});
  // The first four GPUs of both, which share two NICs.
  cluster.gpus.erase(cluster.gpus.begin() + 12, cluster.gpus.end());
  cluster.gpus.erase(cluster.gpus.begin() + 4, cluster.gpus.begin() + 8);
  cluster.server_gpus = {4, 4};
  cluster.gpus_per_node = 4;
  const RankLayout layout = place_on(cluster, &kRing).options.layout;
  REQUIRE(layout.kinds.size() == 1);
  REQUIRE(layout.channels() == 2);
  require_even_use(layout.kinds[0], 2);
}

TEST_CASE("many equal servers are one kind") {
  const Placement placement =
      place_on(cluster_of(std::vector<TestServer>(100, {.gpus = 2, .nics = 2})), &kRing);
  REQUIRE(placement.options.layout.kinds.size() == 1);
  REQUIRE(placement.options.layout.nodes() == 100);
}

TEST_CASE("every kind of server with a mesh has rings of its own") {
  const Cluster cluster = cluster_of({{.gpus = 2, .nics = 1, .scale_up = TestScaleUp::Chain},
                                      {.gpus = 3, .nics = 1, .scale_up = TestScaleUp::Chain},
                                      {.gpus = 3, .nics = 1, .scale_up = TestScaleUp::Pcie}});
  const Placement placement = place_on(cluster, &kRing);
  REQUIRE(placement.options.layout.kinds.size() == 3);
  // A pair is a ring, there and back; three in a row are none.
  REQUIRE(placement.remarks.size() == 1);
  REQUIRE(placement.options.layout.channels() == 2);
}

TEST_CASE("rings over GPUs on a grid go from neighbour to neighbour, one channel each way") {
  const Placement torus = place_on(grid_cluster({3, 3}, {true, true}), &kRing);
  REQUIRE(torus.remarks.empty());
  REQUIRE(torus.options.layout.nodes() == 1);
  REQUIRE(torus.options.layout.channels() == 2);
  const std::vector<int> there = torus.options.layout.ring_order(0);
  REQUIRE(there == std::vector<int>{0, 1, 2, 5, 4, 7, 8, 6, 3});
  const std::vector<int> back = torus.options.layout.ring_order(1);
  REQUIRE(std::equal(there.rbegin(), there.rend(), back.begin(), back.end()));
  REQUIRE(place_on(grid_cluster({3, 3}, {true, true}), &kRing, 3).options.layout.channels() == 3);

  const Placement mesh = place_on(grid_cluster({3, 3}, {false, false}), &kRing);
  REQUIRE(mesh.remarks ==
          std::vector<std::string>{"no ring leads from neighbour to neighbour over the part of the "
                                   "grid that takes part: some hops cross several links"});
  REQUIRE(mesh.options.layout.ring_order(0) == std::vector<int>{0, 1, 2, 5, 4, 3, 6, 7, 8});

  const Placement pairs = place_on(grid_cluster({2, 2}, {false, false}, 2), &kRing);
  REQUIRE(pairs.options.layout.ring_order(0) == std::vector<int>{0, 1, 2, 3, 6, 7, 4, 5});
  REQUIRE(place_on(grid_cluster({4, 4}, {true, true}), &kTree).options.layout.nodes() == 16);
}

TEST_CASE("some ranks of a torus walk over its first rows") {
  const auto first_of = [](int ranks) {
    Cluster cluster = grid_cluster({4, 4}, {true, true});
    cluster.gpus.resize(static_cast<std::size_t>(ranks));
    cluster.server_gpus.resize(static_cast<std::size_t>(ranks));
    cluster.nodes = ranks;
    return place_on(cluster, &kRing);
  };
  REQUIRE(first_of(8).options.layout.ring_order(0) == std::vector<int>{0, 1, 2, 3, 7, 6, 5, 4});
  REQUIRE(first_of(8).remarks.empty());
  REQUIRE(first_of(4).options.layout.ring_order(0) == std::vector<int>{0, 1, 2, 3});
  REQUIRE(first_of(4).remarks.empty());
  REQUIRE(first_of(2).remarks.empty());
  REQUIRE(first_of(3).remarks.size() == 1);  // Three of a row, which close over the fourth.
  REQUIRE(first_of(6).options.layout.ring_order(0) == std::vector<int>{0, 1, 2, 3, 5, 4});
  REQUIRE(first_of(6).remarks.size() == 1);
}

}  // namespace
}  // namespace trainyard
