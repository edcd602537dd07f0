// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/routing/chooser.h"

#include <vector>

namespace trainyard {
namespace {

TEST_CASE("a static chooser takes one digit of the target's index at each level") {
  const RoutingOptions options{.policy = RoutingPolicy::Static};
  const Chooser chooser(options, NodeId(0), NodeId(1), 99, 4 * 5 + 3);
  REQUIRE(chooser.pick(NodeId(8), 4, 1) == 3);
  REQUIRE(chooser.pick(NodeId(8), 8, 4) == 5);
  REQUIRE(chooser.pick(NodeId(9), 1, 1) == 0);
}

TEST_CASE("above parallel links a static chooser keeps what the parallel ones tell") {
  // Six links up, two to each of three switches: index mod 6 names the link, and half of it the
  // switch. The targets that come to one switch differ in index mod 2 and in index / 6.
  const RoutingOptions options{.policy = RoutingPolicy::Static};
  const std::vector<LevelLinks> below = {{.ways = 6, .parallel = 2}};
  for (std::uint32_t parent = 0; parent < 3; ++parent) {
    std::vector<bool> taken(20, false);
    for (std::uint32_t index = 0; index < 60; ++index) {
      const Chooser chooser(options, NodeId(0), NodeId(1), 99, index);
      if (chooser.pick_above(NodeId(8), 6, {}) / 2 == parent) {
        const std::uint32_t choice = chooser.pick_above(NodeId(9), 20, below);
        REQUIRE_FALSE(taken[choice]);
        taken[choice] = true;
      }
    }
  }
  // Without parallel links it is one digit a level.
  const Chooser chooser(options, NodeId(0), NodeId(1), 99, 3 + 4 * (5 + 6 * 7));
  const std::vector<LevelLinks> single = {{.ways = 4}, {.ways = 6}};
  REQUIRE(chooser.pick_above(NodeId(8), 6, std::span(single).first(1)) == 5);
  REQUIRE(chooser.pick_above(NodeId(8), 10, single) == 7);
}

TEST_CASE("the links of a level are counted by the switches above") {
  LevelCount count;
  REQUIRE(count.links().ways == 1);
  REQUIRE(count.links().parallel == 1);
  count.add({7, 7, 5, 5});
  count.add({7, 5, 5});  // One link is broken.
  REQUIRE(count.links().ways == 4);
  REQUIRE(count.links().parallel == 2);
}

TEST_CASE("ports are chosen by flow, not by the target") {
  const Chooser chooser({.policy = RoutingPolicy::Static}, NodeId(0), NodeId(1), 5, 8);
  REQUIRE(chooser.pick_ports(NodeId(0), 4) == 1);
  const Chooser hashing({.policy = RoutingPolicy::EcmpHash}, NodeId(0), NodeId(1), 5, 8);
  REQUIRE(hashing.pick_ports(NodeId(0), 64) == hashing.pick(NodeId(0), 64, 1));
}

TEST_CASE("a hashing chooser looks at label, source, target, node and seed") {
  const auto picks = [](std::uint64_t seed, std::uint32_t source, std::uint32_t target,
                        std::uint32_t label, std::uint32_t first_node) {
    const Chooser chooser({.seed = seed}, NodeId(source), NodeId(target), label, 0);
    std::vector<std::uint32_t> result;
    for (std::uint32_t node = first_node; node < first_node + 16; ++node) {
      result.push_back(chooser.pick(NodeId(node), 64, 1));
    }
    return result;
  };
  const auto reference = picks(1, 2, 3, 4, 5);
  REQUIRE(picks(1, 2, 3, 4, 5) == reference);
  REQUIRE(picks(9, 2, 3, 4, 5) != reference);
  REQUIRE(picks(1, 9, 3, 4, 5) != reference);
  REQUIRE(picks(1, 2, 9, 4, 5) != reference);
  REQUIRE(picks(1, 2, 3, 9, 5) != reference);
  REQUIRE(picks(1, 2, 3, 4, 99) != reference);
}

}  // namespace
TEST_CASE("turns choose the cables of NICs, by switches and back to back") {
  for (const bool by_switches : {true, false}) {
    const LinkSpec cable = {.bandwidth = gigabits_per_second(100)};
    TopologyBuilder builder;
    std::vector<NodeId> nics;
    for (int server = 0; server < 2; ++server) {
      nics.push_back(builder.add_node({.kind = NodeKind::Nic, .server = builder.add_server()}));
    }
    for (int port = 0; port < 2; ++port) {
      if (by_switches) {
        const NodeId leaf = builder.add_node({.kind = NodeKind::Switch});
        builder.add_duplex_link(nics[0], leaf, cable);
        builder.add_duplex_link(nics[1], leaf, cable);
      } else {
        builder.add_duplex_link(nics[0], nics[1], cable);
      }
    }
    const Topology topology = std::move(builder).build();
    for (const RoutingPolicy policy :
         {RoutingPolicy::EcmpHash, RoutingPolicy::Static, RoutingPolicy::Spray}) {
      Routing routing(topology, {.policy = policy});
      for (std::uint32_t turn = 0; turn < 4; ++turn) {
        for (std::uint32_t label = 0; label < 8; ++label) {
          std::vector<LinkId> path;
          REQUIRE(routing.route(nics[0], nics[1], label, path, 0,
                                NicTurns{.source = turn, .target = turn}));
          REQUIRE(path.front() == topology.links_from(nics[0])[turn % 2]);
          // What no switch joins takes any cables.
          REQUIRE(routing.route(nics[0], nics[1], label, path, 0,
                                NicTurns{.source = turn, .target = turn + 1}));
          REQUIRE(topology.link(path.back()).target == nics[1]);
        }
      }
    }
  }
}

}  // namespace trainyard
