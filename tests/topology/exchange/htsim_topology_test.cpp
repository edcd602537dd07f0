// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <map>
#include <string>
#include <utility>

#include "support/imported.h"
#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

// Two pods of two leaves and two spines, and four cores with two cables to each of their spines.
const std::string kTree =
    "# a comment\n"
    "Nodes 8\n"
    "Tiers 3\n"
    "Podsize 4\n"
    "\n"
    "Tier 0\n"
    "Downlink_speed_Gbps 200\n"
    "Radix_Down 2\n"
    "Radix_Up 2\n"
    "Downlink_Latency_ns 1000\n"
    "Tier 1\n"
    "Downlink_speed_Gbps 200\n"
    "Radix_Down 2\n"
    "Radix_Up 4\n"
    "Downlink_Latency_ns 2000\n"
    "Switch_Latency_ns 300\n"
    "Tier 2\n"
    "Downlink_speed_Gbps 100\n"
    "Radix_Down 4\n"
    "Downlink_Latency_ns 3000\n"
    "Bundle 2\n";

std::string error_of_tree(const std::string& old, const std::string& replacement) {
  return complaint([&] { return read_htsim_topology(with(kTree, old, replacement), "t.topo"); });
}

}  // namespace

TEST_CASE("a file of htsim becomes the cables that htsim lays") {
  REQUIRE(looks_like_htsim_topology(kTree));
  const SimulatedNetwork network = read_htsim_topology(kTree, "t.topo");
  REQUIRE(network.hosts == 8);
  // Leaves 8 to 11, spines 12 to 15, cores 16 to 19.
  REQUIRE(network.switch_delays.size() == 12);
  REQUIRE(network.switch_delays[3] == SimTime());
  REQUIRE(network.switch_delays[4] == nanoseconds(300));
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> copies;
  for (const SimulatedNetwork::Cable& cable : network.cables) {
    const std::int64_t tier = cable.to < 12 ? 1 : cable.to < 16 ? 2 : 3;
    REQUIRE(cable.delay == microseconds(tier));
    REQUIRE(cable.rate == parse_bandwidth(tier == 3 ? "100 Gb/s" : "200 Gb/s"));
    ++copies[{cable.from, cable.to}];
  }
  for (std::uint32_t host = 0; host < 8; ++host) {
    REQUIRE(copies[{host, 8 + host / 2}] == 1);
  }
  for (std::uint32_t leaf = 0; leaf < 4; ++leaf) {
    for (std::uint32_t spine = 0; spine < 4; ++spine) {
      REQUIRE(copies[{8 + leaf, 12 + spine}] == (leaf / 2 == spine / 2 ? 1 : 0));
    }
  }
  for (std::uint32_t spine = 0; spine < 4; ++spine) {
    for (std::uint32_t core = 0; core < 4; ++core) {
      REQUIRE(copies[{12 + spine, 16 + core}] == (spine % 2 == core % 2 ? 2 : 0));
    }
  }
  REQUIRE(network.cables.size() == 8 + 8 + 16);
}

TEST_CASE("connection matrices of htsim are no topologies") {
  REQUIRE(!looks_like_htsim_topology("Nodes 8\nConnections 2\n0->1 start 0 size 10\n"));
  REQUIRE(!looks_like_htsim_topology("Nodes 8\n"));
}

TEST_CASE("mistakes in a file of htsim are one line with their place") {
  REQUIRE(error_of_tree("Podsize", "Podsise") ==
          "t.topo:4: key: expected Nodes, Tiers, Podsize, Tier or a key of a tier, found "
          "\"Podsise\"");
  REQUIRE(error_of_tree("Podsize 4", "") == "t.topo:22: podsize: expected a number, found none");
  REQUIRE(error_of_tree("Tiers 3", "Tiers 4") == "t.topo:3: tiers: expected 2 or 3, found 4");
  REQUIRE(error_of_tree("Tier 0\n", "Tier 3\n") ==
          "t.topo:6: tier: expected 0, 1 or 2, found \"3\"");
  REQUIRE(error_of_tree("Tier 0\n", "") ==
          "t.topo:6: downlink_speed_gbps: expected a line Tier before it, found none");
  REQUIRE(error_of_tree("Radix_Up 2", "Radix_Up two") ==
          "t.topo:9: radix_up: expected a whole number up to 1000000, found \"two\"");
  REQUIRE(error_of_tree("Radix_Up 2", "Radix_Down 2") ==
          "t.topo:9: radix_down: expected it once, found it twice");
  REQUIRE(error_of_tree("Radix_Up 2\n", "") ==
          "t.topo:6: tier 0: expected the key radix_up, found none");
  REQUIRE(error_of_tree("Nodes 8", "Nodes 9") ==
          "t.topo:2: nodes: expected a multiple of 4, found 9");
  REQUIRE(error_of_tree("Bundle 2", "Bundle 1") ==
          "t.topo:19: radix_down of tier 2: expected 2, as the pods and the bundle say, found 4");
  REQUIRE(error_of_tree("Tiers 3", "Tiers 2") ==
          "t.topo:4: podsize: expected that of all nodes, as two tiers have one pod, found 4");
  REQUIRE(error_of_tree("Tier 1\n", "Oversubscribed 2\nTier 1\n") ==
          "t.topo:11: oversubscribed of tier 0: expected 1, the rate down over the rate up, found "
          "2");
}

}  // namespace trainyard
