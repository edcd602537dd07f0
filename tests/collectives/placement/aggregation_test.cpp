// SPDX-License-Identifier: Apache-2.0
// Which switches add up: what shipped clusters can, cannot, and why.
#include "support/catch.h"

#include "collectives/placement/aggregation.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/placed_run.h"

namespace trainyard {
namespace {

std::string error(const std::string& name, Algorithm algorithm, const ClusterOverrides& overrides) {
  const Cluster cluster = shipped_cluster(name, overrides);
  return placement_error(cluster, Routing(cluster.topology, cluster.routing), algorithm)
      .value_or("none");
}

SwitchPlan plan(const Cluster& cluster, Algorithm algorithm) {
  std::string reason;
  const Routing routing(cluster.topology, cluster.routing);
  const std::optional<SwitchPlan> found = plan_switches(cluster, routing, algorithm, reason);
  INFO(reason);
  REQUIRE(found.has_value());
  return *found;
}

TEST_CASE("nvls needs all ranks on one NVSwitch that can reduce") {
  const ClusterOverrides one{.nodes = 1};
  for (const char* name : {"dgx-h100", "hgx-b200", "hgx-h100-clos"}) {
    REQUIRE(error(name, &kNvls, one) == "none");
    REQUIRE(error(name, &kNvls, {.nodes = 1, .gpus_per_node = 3}) == "none");
    REQUIRE(error(name, &kNvls, {.nodes = 2}) == "the ranks are not all on one NVSwitch");
  }
  for (const char* name : {"dgx-1", "dgx-2", "mi300x", "rtx4090-pcie", "h100-1gpu-400g"}) {
    REQUIRE(error(name, &kNvls, one) == "the ranks are not all on one NVSwitch");
  }
  REQUIRE(error("dgx-a100", &kNvls, one) == "the switch NVSwitch2 cannot add up in the network");
  const Cluster cluster = shipped_cluster("dgx-h100", one);
  const SwitchPlan found = plan(cluster, &kNvls);
  REQUIRE(found.relays.size() == 1);
  REQUIRE(cluster.topology.node(found.relays[0]).name == "server0/nvswitch");
}

TEST_CASE("sharp needs several servers and switches that can reduce") {
  const ClusterOverrides four{.nodes = 4};
  for (const char* name : {"dgx-h100", "dgx-a100", "hgx-b200", "h100-1gpu-400g"}) {
    REQUIRE(error(name, &kSharp, four) == "none");
    REQUIRE(error(name, &kSharp, {.nodes = 1}) ==
            "one server does not use the switches of the fabric");
  }
  REQUIRE(error("hgx-h100-clos", &kSharp, four) ==
          "the switch Spectrum4-SN5400 cannot add up in the network");
  REQUIRE(error("mi300x", &kSharp, four) == "the switch Tomahawk4 cannot add up in the network");
  // The spines as well.
  REQUIRE(
      error("dgx-h100", &kSharp, {.nodes = 64, .settings = {"fabric.spine=Spectrum4-SN5400"}}) ==
      "the switch Spectrum4-SN5400 cannot add up in the network");
}

TEST_CASE("algorithms without relays run anywhere") {
  const Cluster cluster = shipped_cluster("rtx4090-pcie", {.nodes = 1});
  for (const Algorithm algorithm : {&kRing, &kTree, &kHalvingDoubling, &kPairwise, &kDirect}) {
    REQUIRE(plan(cluster, algorithm).relays.empty());
  }
}

TEST_CASE("a rail is a tree, and trees use different spines as long as there are enough") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 64});
  const SwitchPlan found = plan(cluster, &kSharp);
  REQUIRE(found.trees.size() == 8);
  REQUIRE(found.relays.size() == 8 * 3);  // Two leaves and a spine each.
  std::set<std::uint32_t> used;
  for (std::size_t rail = 0; rail < 8; ++rail) {
    const AggregationTree& tree = found.trees[rail];
    used.insert(*tree.spine);
    for (std::size_t server = 0; server < 64; ++server) {
      const std::string leaf = "leaf" + std::to_string(server / 32 * 8 + rail);
      const AggregationTree::Member& member = tree.members[server];
      REQUIRE(member.head == RankId(static_cast<std::uint32_t>(server * 8 + rail)));
      REQUIRE(cluster.topology.node(found.relays[member.leaf]).name == leaf);
      used.insert(member.leaf);
    }
  }
  REQUIRE(used.size() == 8 * 3);
}

TEST_CASE("in a Clos the trees share the leaves, and spines are taken in turn") {
  const Cluster cluster = shipped_cluster(
      "hgx-h100-clos",
      {.nodes = 16, .settings = {"fabric.leaf=Quantum2-QM9700", "fabric.spine=Quantum2-QM9700"}});
  const SwitchPlan found = plan(cluster, &kSharp);
  REQUIRE(found.trees.size() == 8);
  std::set<std::uint32_t> spines;
  std::set<std::uint32_t> leaves;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cables;
  for (const AggregationTree& tree : found.trees) {
    spines.insert(*tree.spine);
    cables.emplace(*tree.spine, tree.trunk);
    for (const AggregationTree::Member& member : tree.members) {
      leaves.insert(member.leaf);
    }
  }
  REQUIRE(cables.size() == 8);
  REQUIRE(leaves.size() == 4);  // Four servers of eight NICs below 32 of 64 ports.
  REQUIRE(spines.size() == found.relays.size() - leaves.size());
  REQUIRE(spines.size() > 1);
}

}  // namespace
}  // namespace trainyard
