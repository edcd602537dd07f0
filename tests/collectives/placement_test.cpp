// SPDX-License-Identifier: Apache-2.0
// Channels on the shipped clusters: rings along NVLinks, and every NIC used alike.
#include "support/catch.h"

#include "collectives/placement.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs";

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
  const Placement placement = place_on(cluster, Algorithm::Ring);
  REQUIRE(placement.nodes == cluster.gpus);
  REQUIRE(placement.layout.nodes() == 2);
  REQUIRE(placement.layout.most_ranks_per_node() == 8);
  REQUIRE(placement.layout.ranks() == 16);
}

TEST_CASE("on the cube mesh the channels are its six rings, along NVLinks all the way") {
  const Cluster cluster = load("dgx-1", 1);
  for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::Tree}) {
    const Placement placement = place_on(cluster, algorithm);
    REQUIRE(placement.remarks.empty());
    REQUIRE(placement.layout.channels() == 6);
    REQUIRE(placement.layout.chain_in_single_node);
    for (const std::vector<int>& order : placement.layout.kinds.at(0)) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        REQUIRE(directly_joined(cluster, order[i], order[(i + 1) % order.size()]));
      }
    }
  }
}

TEST_CASE("part of a mesh that has no ring is visited in natural order, with a remark") {
  // GPU 4 is joined to GPU 0 alone among the first five.
  const Placement placement = place_on(load("dgx-1", 1, 5), Algorithm::Ring);
  REQUIRE(placement.layout.kinds.at(0) ==
          std::vector<std::vector<int>>(2, std::vector<int>{0, 1, 2, 3, 4}));
  REQUIRE_FALSE(placement.layout.chain_in_single_node);
  REQUIRE(placement.remarks ==
          std::vector<std::string>{
              "the direct links between the GPUs of a node form no ring: the channels visit the "
              "GPUs in their natural order, in part over PCIe"});
}

TEST_CASE("behind an NVSwitch two channels visit the GPUs in natural order") {
  const Placement placement = place_on(load("dgx-h100", 1), Algorithm::Tree);
  REQUIRE(placement.layout.kinds.at(0) ==
          std::vector<std::vector<int>>(2, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  REQUIRE_FALSE(placement.layout.chain_in_single_node);
  REQUIRE(placement.remarks.empty());
}

TEST_CASE("over several nodes as many channels enter and leave at each NIC") {
  for (const char* name : {"dgx-1", "dgx-h100"}) {
    const Cluster cluster = load(name, 2);
    const Placement placement = place_on(cluster, Algorithm::Ring);
    INFO(name);
    REQUIRE(placement.layout.alternate);
    const int channels = placement.layout.channels();
    const int nics = cluster.nics_per_node;
    REQUIRE(channels % nics == 0);
    std::vector<int> entering(static_cast<std::size_t>(nics), 0);
    std::vector<int> leaving = entering;
    for (const std::vector<int>& order : placement.layout.kinds.at(0)) {
      ++entering[static_cast<std::size_t>(order.front() * nics / cluster.gpus_per_node)];
      ++leaving[static_cast<std::size_t>(order.back() * nics / cluster.gpus_per_node)];
    }
    const std::vector<int> alike(static_cast<std::size_t>(nics), channels / nics);
    REQUIRE(entering == alike);
    REQUIRE(leaving == alike);
  }
  REQUIRE_FALSE(place_on(load("dgx-h100", 3), Algorithm::Ring).layout.alternate);
}

TEST_CASE("the number of channels can be given, and other algorithms have one") {
  const Cluster cluster = load("dgx-h100", 2);
  REQUIRE(place_on(cluster, Algorithm::Ring, 3).layout.channels() == 3);
  REQUIRE(place_on(load("dgx-1", 1), Algorithm::Tree, 7).layout.channels() == 7);
  for (const Algorithm algorithm :
       {Algorithm::HalvingDoubling, Algorithm::Pairwise, Algorithm::Direct}) {
    REQUIRE(place_on(cluster, algorithm).layout.channels() == 1);
    REQUIRE(place_on(cluster, algorithm, 4).layout.channels() == 4);
  }
}

}  // namespace
}  // namespace trainyard
