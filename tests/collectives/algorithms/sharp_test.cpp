// SPDX-License-Identifier: Apache-2.0
// SHARP: proofs for trees of every shape, what NICs, leaves and spines carry, and the idle time.
#include "support/catch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/placement/placement.h"
#include "support/placed_run.h"
#include "support/proof.h"

namespace trainyard {
namespace {

using SharpLoads = std::vector<std::int64_t>;

// `heads` trees, evenly over the ranks of each node; `nodes_per_leaf` nodes on each leaf.
std::vector<AggregationTree> trees_of(const RankLayout& layout, int heads, int nodes_per_leaf) {
  std::vector<AggregationTree> trees;
  const std::vector<std::uint32_t> first_ranks = layout.first_ranks();
  const int leaves = (layout.nodes() + nodes_per_leaf - 1) / nodes_per_leaf;
  for (int tree = 0; tree < heads; ++tree) {
    AggregationTree& next = trees.emplace_back();
    for (int node = 0; node < layout.nodes(); ++node) {
      const auto first = static_cast<int>(first_ranks[static_cast<std::size_t>(node)]);
      const int ranks = static_cast<int>(first_ranks[static_cast<std::size_t>(node) + 1]) - first;
      next.members.push_back(
          {.head = RankId(static_cast<std::uint32_t>(first + tree * ranks / heads)),
           .leaf = static_cast<std::uint32_t>(node / nodes_per_leaf)});
    }
    if (leaves > 1) {
      next.spine = static_cast<std::uint32_t>(leaves + tree % 2);
    }
  }
  return trees;
}

LocalOrders natural_orders(int ranks, int channels) {
  return flat_layout(ranks, channels).kinds.front();
}

TEST_CASE("trees of one or several leaves add up everything once and bring it back") {
  for (const int nodes : {1, 2, 3, 4, 7, 8}) {
    for (const int per_node : {1, 2, 3, 4, 8}) {
      for (const int heads : {1, 2, 4, 8}) {
        for (const int nodes_per_leaf : {1, 2, 3, 8}) {
          for (const int pieces : {1, 3}) {
            INFO(nodes << " nodes of " << per_node << ", " << heads << " heads, " << nodes_per_leaf
                       << " nodes a leaf, " << pieces << " pieces");
            const RankLayout layout =
                even_layout(nodes, natural_orders(per_node, pieces == 1 ? 1 : 2));
            const auto schedule = make_schedule(&kSharp, Operation::AllReduce,
                                                {.layout = layout,
                                                 .root = {},
                                                 .pieces = pieces,
                                                 .trees = trees_of(layout, heads, nodes_per_leaf)});
            REQUIRE(verify(*schedule).value_or("proved") == "proved");
          }
        }
      }
    }
  }
}

TEST_CASE("servers may differ in their ranks") {
  RankLayout layout;
  layout.kinds = {natural_orders(4, 1), natural_orders(1, 1), natural_orders(3, 1)};
  layout.node_kinds = {0, 1, 2, 0, 1};
  for (const int heads : {1, 3, 4}) {
    for (const int nodes_per_leaf : {2, 5}) {
      const auto schedule = make_schedule(&kSharp, Operation::AllReduce,
                                          {.layout = layout,
                                           .root = {},
                                           .pieces = 2,
                                           .trees = trees_of(layout, heads, nodes_per_leaf)});
      REQUIRE(verify(*schedule).value_or("proved") == "proved");
    }
  }
}

TEST_CASE("a NIC carries its share up and down, whatever the number of servers") {
  for (const int nodes : {2, 3, 4, 7, 40}) {
    for (const int gpus : {1, 2, 4, 8}) {
      const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = nodes, .gpus_per_node = gpus});
      INFO(nodes << " servers, " << gpus << " GPUs");
      const std::int64_t share = 3000;
      const PlacedRun run =
          run_placed(cluster, {.algorithm = &kSharp, .size = Bytes(share * gpus), .pieces = 3});
      const auto carried = [&](NodeKind source, NodeKind target) {
        return loads(cluster.topology, run, source, target);
      };
      REQUIRE(carried(NodeKind::Nic, NodeKind::Switch) == SharpLoads{share});
      REQUIRE(carried(NodeKind::Switch, NodeKind::Nic) == SharpLoads{share});
      // 32 servers fit one leaf of a rail; each tree has a spine of its own.
      REQUIRE(carried(NodeKind::Switch, NodeKind::Switch) ==
              (nodes > 32 ? SharpLoads{share} : SharpLoads{}));
      // Inside the server each GPU sends all but its own share, twice: to be added, and added up.
      const SharpLoads inside = gpus > 1 ? SharpLoads{2 * (gpus - 1) * share} : SharpLoads{};
      REQUIRE(carried(NodeKind::Gpu, NodeKind::NvSwitch) == inside);
      REQUIRE(carried(NodeKind::NvSwitch, NodeKind::Gpu) == inside);
    }
  }
}

TEST_CASE("in a Clos every tree has cables of its own, though trees share leaves and spines") {
  for (const char* routing : {"ecmp", "static"}) {
    const Cluster cluster =
        shipped_cluster("hgx-h100-clos",
                        {.nodes = 16,
                         .settings = {"fabric.leaf=Quantum2-QM9700", "fabric.spine=Quantum2-QM9700",
                                      std::string("fabric.routing=") + routing}});
    INFO(routing);
    const PlacedRun run = run_placed(cluster, {.algorithm = &kSharp, .size = Bytes(8 * 700)});
    REQUIRE(loads(cluster.topology, run, NodeKind::Nic, NodeKind::Switch) == SharpLoads{700});
    REQUIRE(loads(cluster.topology, run, NodeKind::Switch, NodeKind::Switch) == SharpLoads{700});
    std::size_t trunks = 0;
    for (const auto& [id, bytes] : run.bytes) {
      const Link& link = cluster.topology.link(id);
      trunks += cluster.topology.node(link.source).kind == NodeKind::Switch &&
                        cluster.topology.node(link.target).kind == NodeKind::Switch
                    ? 1
                    : 0;
    }
    REQUIRE(trunks == 2 * 4 * 8);  // Both ways, four leaves, eight trees.
  }
}

TEST_CASE("there are as many shares as NICs, where GPUs share them and where they have several") {
  const Cluster several = shipped_cluster(
      "dgx-h100", {.nodes = 4, .settings = {"server.gpus=4", "server.pcie_switches=4"}});
  const PlacedRun two_each = run_placed(several, {.algorithm = &kSharp, .size = Bytes(8 * 500)});
  REQUIRE(loads(several.topology, two_each, NodeKind::Nic, NodeKind::Switch) == SharpLoads{500});
  REQUIRE(loads(several.topology, two_each, NodeKind::Switch, NodeKind::Nic) == SharpLoads{500});
  // 16 GPUs and 8 NICs in a server.
  const Cluster cluster =
      shipped_cluster("dgx-2", {.nodes = 4, .settings = {"fabric.leaf=Quantum-QM8700"}});
  const PlacedRun run = run_placed(cluster, {.algorithm = &kSharp, .size = Bytes(8 * 500)});
  REQUIRE(loads(cluster.topology, run, NodeKind::Nic, NodeKind::Switch) == SharpLoads{500});
  REQUIRE(loads(cluster.topology, run, NodeKind::Switch, NodeKind::Nic) == SharpLoads{500});
}

TEST_CASE("the NICs of a server that has fewer of them take turns") {
  Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 3});
  cluster.gpus.resize(8 + 8 + 3);
  cluster.server_gpus = {8, 8, 3};
  const PlacedRun run =
      run_placed(cluster, {.algorithm = &kSharp, .size = Bytes(8 * 500), .pieces = 5});
  // Eight shares on three NICs: three, three and two.
  REQUIRE(loads(cluster.topology, run, NodeKind::Nic, NodeKind::Switch) ==
          SharpLoads{500, 1000, 1500});
  REQUIRE(loads(cluster.topology, run, NodeKind::Switch, NodeKind::Nic) ==
          SharpLoads{500, 1000, 1500});
}

// Latency and rate of the way between two nodes.
struct Way {
  SimTime latency;
  Bandwidth bandwidth;
};

Way way(const Cluster& cluster, NodeId source, NodeId target) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(source, target, 0, path));
  return {.latency = path_latency(cluster.topology, path),
          .bandwidth = path_bandwidth(cluster.topology, path)};
}

TEST_CASE("on idle links each level takes its latency and one share, inside a server the others'") {
  for (const int nodes : {4, 40}) {
    for (const int gpus : {1, 2, 8}) {
      const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = nodes, .gpus_per_node = gpus});
      INFO(nodes << " servers, " << gpus << " GPUs");
      const Routing routing(cluster.topology, cluster.routing);
      const Placement placement = place(cluster, routing, &kSharp, 1);
      const Bytes share = mib(6);
      const AggregationTree& tree = placement.options.trees.front();
      const auto relay = [&](std::uint32_t index) {
        return placement.nodes[cluster.gpus.size() + index];
      };
      std::vector<std::pair<NodeId, NodeId>> levels{{cluster.gpus[0], relay(tree.members[0].leaf)}};
      if (nodes > 32) {
        levels.emplace_back(relay(tree.members[0].leaf), relay(*tree.spine));
      }
      SimTime expected;
      for (const auto& [below, above] : levels) {
        for (const Way& one : {way(cluster, below, above), way(cluster, above, below)}) {
          expected += one.latency + transfer_time(share, one.bandwidth);
        }
      }
      if (gpus > 1) {
        const Way local = way(cluster, cluster.gpus[0], cluster.gpus[1]);
        expected += (local.latency + transfer_time(share * (gpus - 1), local.bandwidth)) * 2;
      }
      const SimTime time = run_placed(cluster, {.algorithm = &kSharp, .size = share * gpus}).finish;
      // Each level rounds up once more where its messages share a link.
      REQUIRE(time >= expected - SimTime(6));
      REQUIRE(time <= expected + SimTime(6));
    }
  }
}

TEST_CASE("a schedule of sharp has as many relays as its trees name") {
  const RankLayout layout = even_layout(4, natural_orders(2, 1));
  const auto relays = [&](const std::vector<AggregationTree>& trees) {
    return make_schedule(&kSharp, Operation::AllReduce,
                         {.layout = layout, .root = {}, .pieces = 1, .trees = trees})
        ->shape()
        .relays;
  };
  REQUIRE(relays({}) == 1);
  REQUIRE(relays(trees_of(layout, 1, 4)) == 1);
  REQUIRE(relays(trees_of(layout, 1, 2)) == 3);
  REQUIRE(relays(trees_of(layout, 2, 2)) == 4);
}

}  // namespace
}  // namespace trainyard
