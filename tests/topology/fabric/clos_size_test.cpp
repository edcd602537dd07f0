// SPDX-License-Identifier: Apache-2.0
// The size of fabrics: against the counts that NVIDIA publishes, by formula, and at the limits.
#include "support/catch.h"

#include "topology/fabric/clos_size.h"

#include <string>
#include <vector>

#include "support/clos_reading.h"

namespace trainyard {
namespace {

const std::string kRail = "template: rail-optimised, leaf: Quantum2-QM9700, spine: Quantum2-QM9700";
const std::string kClos = "template: clos, leaf: Quantum2-QM9700, spine: Quantum2-QM9700";
const std::string kCore = ", core: Quantum2-QM9700";
const std::string kXdr =
    "template: rail-optimised, leaf: QuantumX800-Q3400, spine: QuantumX800-Q3400";

struct Published {
  int nodes;
  int leaves;
  int spines;
  int cables;  // Between leaves and spines.
};

void require_published(const std::string& fabric, const std::vector<Published>& rows) {
  for (const Published& row : rows) {
    INFO(row.nodes << " servers");
    const ClosSpec spec = read_clos(row.nodes, servers_of(8, 800), fabric);
    REQUIRE(spec.leaves == row.leaves);
    REQUIRE(spec.spines == row.spines);
    REQUIRE(spec.leaves * spec.uplinks == row.cables);
  }
}

TEST_CASE("rail-optimised fabrics have the counts of the SuperPOD reference architectures") {
  require_published(kRail, {{64, 16, 8, 512}, {128, 32, 16, 1024}, {256, 64, 32, 2048}});
  require_published(kXdr, {{72, 8, 4, 576},
                           {144, 16, 8, 1152},
                           {288, 32, 18, 2304},
                           {576, 64, 36, 4608},
                           {1296, 144, 72, 10368}});
}

struct PublishedWithCores {
  int nodes;
  int leaves;
  int spines;
  int cores;
  int cables;  // Between leaves and spines, and as many between spines and cores.
};

TEST_CASE("three tiers have the counts of the SuperPOD reference architecture") {
  const std::vector<PublishedWithCores> rows = {
      {512, 128, 128, 64, 4096}, {1024, 256, 256, 128, 8192}, {2048, 512, 512, 256, 16384}};
  for (const PublishedWithCores& row : rows) {
    INFO(row.nodes << " servers");
    const ClosSpec spec = read_clos(row.nodes, servers_of(8), kRail + kCore);
    REQUIRE(spec.tiers == 3);
    REQUIRE(spec.leaves == row.leaves);
    REQUIRE(spec.spines == row.spines);
    REQUIRE(spec.cores == row.cores);
    REQUIRE(spec.leaves * spec.uplinks == row.cables);
    REQUIRE(spec.spines * spec.spine_uplinks == row.cables);
  }
  // The core is not used where two tiers do.
  const ClosSpec two = read_clos(256, servers_of(8), kRail + kCore);
  REQUIRE(two.tiers == 2);
  REQUIRE(two.cores == 0);
  REQUIRE(two.spines == 32);
}

TEST_CASE("a Clos keeps whole servers below a leaf and has as many ports up as down") {
  for (const int nodes : {9, 16, 32, 100, 256}) {
    INFO(nodes << " servers");
    const ClosSpec spec = read_clos(nodes, servers_of(8), kClos);
    REQUIRE(spec.servers_per_leaf == 4);
    REQUIRE(spec.leaves == (nodes + 3) / 4);
    REQUIRE(spec.uplinks == 32);
    REQUIRE(spec.uplinks % spec.spines == 0);
    REQUIRE(spec.leaves * spec.uplinks <= spec.spines * 64);
  }
}

TEST_CASE("a Clos that fits one leaf has no spine") {
  const ClosSpec spec = read_clos(8, servers_of(8), kClos);
  REQUIRE(spec.leaves == 1);
  REQUIRE(spec.spines == 0);
}

TEST_CASE("oversubscription gives a leaf more ports down than up") {
  const ClosSpec spec = read_clos(64, servers_of(8), kClos + ", oversubscription: 3");
  REQUIRE(spec.servers_per_leaf == 6);  // 48 ports down, 16 up.
  REQUIRE(spec.uplinks == 16);
  REQUIRE(spec.leaves == 11);
  const ClosSpec rail = read_clos(48, servers_of(8), kRail + ", oversubscription: 3");
  REQUIRE(rail.servers_per_leaf == 48);
  REQUIRE(rail.uplinks == 16);
}

TEST_CASE("a fabric that does not fit says how many servers would") {
  REQUIRE_THROWS_WITH(
      read_clos(257, servers_of(8), kRail),
      "fabric.yaml:1:8: nodes: at most 256 servers of 8 NICs fit two tiers of "
      "Quantum2-QM9700 below Quantum2-QM9700 of 64 ports, found 257: lower nodes, take "
      "switches with more ports or give a core");
  REQUIRE(read_clos(256, servers_of(8), kRail).leaves == 64);
  REQUIRE_THROWS_WITH(
      read_clos(1'000'000, servers_of(8), kClos),
      "fabric.yaml:1:8: nodes: at most 256 servers of 8 NICs fit two tiers of "
      "Quantum2-QM9700 below Quantum2-QM9700 of 64 ports, found 1000000: lower nodes, "
      "take switches with more ports or give a core");
}

TEST_CASE("tiers have the ports for what is joined to them") {
  for (const int nodes : {33, 300, 700, 2000}) {
    for (const double leaf_ratio : {1.0, 1.5, 3.0}) {
      for (const double spine_ratio : {1.0, 2.0, 7.0}) {
        INFO(nodes << " servers, " << leaf_ratio << ", " << spine_ratio);
        const ClosSpec spec = read_clos(
            nodes, servers_of(8),
            kClos + kCore + ", tiers: 3, oversubscription: " + std::to_string(leaf_ratio) +
                ", spine_oversubscription: " + std::to_string(spine_ratio));
        const int spines = spec.spines_per_pod();
        const int down = spec.leaves_per_pod * spec.uplinks / spines;
        REQUIRE(spec.spines == spines * spec.pods);
        REQUIRE(spec.leaves > (spec.pods - 1) * spec.leaves_per_pod);
        REQUIRE(spec.leaves <= spec.pods * spec.leaves_per_pod);
        REQUIRE(spec.uplinks % spines == 0);
        REQUIRE(spec.cores % spines == 0);
        REQUIRE(spec.spine_uplinks % spec.cores_per_spine() == 0);
        REQUIRE(spec.ports_per_leaf + spec.uplinks <= 64);
        REQUIRE(down + spec.spine_uplinks <= 64);
        REQUIRE(spec.pods * spec.spine_uplinks / spec.cores_per_spine() <= 64);
        // Uplinks are as many as the ratio asks for, rounded up.
        REQUIRE(spec.uplinks * leaf_ratio >= spec.ports_per_leaf - 1e-6);
        REQUIRE((spec.uplinks - 1) * leaf_ratio < spec.ports_per_leaf);
        REQUIRE(spec.spine_uplinks * spine_ratio >= down - 1e-6);
        REQUIRE((spec.spine_uplinks - 1) * spine_ratio < down);
      }
    }
  }
}

TEST_CASE("seven ports down for one up make the pods of Meta's RoCE cluster") {
  // Gangidi et al., RDMA over Ethernet for distributed training at Meta scale, 2024: pods of 3,072
  // GPUs, two servers of eight a leaf, full rate within a pod, 1:7 between pods. Here with 64
  // ports: 56 leaves a pod.
  const std::string text = kClos + kCore + ", nodes_per_leaf: 2, spine_oversubscription: 7";
  const ClosSpec spec = read_clos(448, servers_of(8), text);
  REQUIRE(spec.leaves_per_pod == 56);
  REQUIRE(spec.pods == 4);
  REQUIRE(spec.uplinks == 16);
  REQUIRE(spec.spines_per_pod() == 16);
  REQUIRE(spec.spine_uplinks == 8);
  REQUIRE(spec.cores == 16);
}

TEST_CASE("the k-ary fat tree has the numbers of its paper") {
  for (int k = 2; k <= 64; k += 2) {
    INFO("k=" << k);
    const std::string text = "template: fat-tree, switch: Quantum2-QM9700, k: " + std::to_string(k);
    const ClosSpec spec = read_clos(k * k * k / 4, servers_of(1), text);
    REQUIRE(spec.pods == k);
    REQUIRE(spec.leaves == k * k / 2);
    REQUIRE(spec.spines == k * k / 2);
    REQUIRE(spec.cores == k * k / 4);
    REQUIRE(spec.uplinks == k / 2);
    REQUIRE(spec.spine_uplinks == k / 2);
    REQUIRE_THROWS_WITH(
        read_clos(k * k * k / 4 + 1, servers_of(1), text),
        Catch::Contains("at most " + std::to_string(k * k * k / 4) +
                        " servers of 1 NICs fit the fat tree of k = " + std::to_string(k)));
  }
  // Fewer servers leave out the switches that they do not need.
  const ClosSpec part =
      read_clos(9, servers_of(1), "template: fat-tree, switch: Quantum2-QM9700, k: 4");
  REQUIRE(part.leaves == 5);
  REQUIRE(part.pods == 3);
  REQUIRE(part.spines == 6);
}

TEST_CASE("servers of several kinds fill leaves in order") {
  std::vector<ServerSpec> servers(6, servers_of(8));
  servers.insert(servers.end(), 20, servers_of(2, 100));
  servers.insert(servers.end(), 4, servers_of(8));
  const ClosSpec spec = ClosReading(servers, kClos).spec();
  // 32 ports down: four of 8; two of 8 and eight of 2; twelve of 2 and one of 8; three of 8.
  std::vector<int> groups(4, 0);
  groups.insert(groups.end(), 10, 1);
  groups.insert(groups.end(), 13, 2);
  groups.insert(groups.end(), 3, 3);
  REQUIRE(spec.group_of_server == groups);
  REQUIRE(spec.leaves == 4);
  REQUIRE(spec.ports_per_leaf == 32);
  REQUIRE(spec.host_links[0].bandwidth == gigabits_per_second(384));
  REQUIRE(spec.host_links[6].bandwidth == gigabits_per_second(96));

  servers.resize(8);  // 52 ports.
  REQUIRE(ClosReading(servers, "template: single-switch, leaf: Quantum2-QM9700").spec().leaves ==
          1);
  servers.insert(servers.end(), 7, servers_of(2));  // 66 ports.
  REQUIRE_THROWS_WITH(
      ClosReading(servers, "template: single-switch, leaf: Quantum2-QM9700").spec(),
      "fabric.yaml:1:8: nodes: at most the first 14 servers fit one Quantum2-QM9700 of 64 ports, "
      "found 15: lower nodes or take switches with more ports");
  REQUIRE_THROWS_WITH(
      ClosReading(servers, kRail).spec(),
      "fabric.yaml:2:33: fabric.template: rail-optimised needs servers with equally many NICs, "
      "found 2 and 8; use the template clos");
}

TEST_CASE("the ports of NICs are dealt to planes and leaves") {
  const ClosSpec planes = read_clos(64, servers_of(8, 400, 2), kRail + ", planes: 2");
  REQUIRE(planes.planes == 2);
  REQUIRE(planes.leaves == 16);
  REQUIRE(planes.host_links[0].bandwidth == gigabits_per_second(192));
  const ClosSpec tors = read_clos(64, servers_of(8, 400, 2), kRail + ", dual_tor: true");
  REQUIRE(tors.planes == 1);
  REQUIRE(tors.leaves == 32);
  REQUIRE(tors.servers_per_leaf == 32);
  REQUIRE(read_clos(64, servers_of(8, 400, 2), kRail + ", dual_tor: false").leaves == 16);
  // One pair of leaves needs no spine.
  REQUIRE(
      read_clos(8, servers_of(8, 400, 2), "template: clos, leaf: Quantum2-QM9700, dual_tor: true")
          .spines == 0);
  REQUIRE_THROWS_WITH(read_clos(8, servers_of(8, 400, 2), "planes: 3, " + kClos),
                      "fabric.yaml:2:31: fabric.planes: expected a divisor of the 2 ports of a "
                      "NIC, found \"3\"");
  REQUIRE_THROWS_WITH(
      read_clos(8, servers_of(8, 400, 2), "planes: 2, dual_tor: true, " + kClos),
      "fabric.yaml:2:44: fabric.dual_tor: a NIC of 2 ports has one port a plane, and two leaves "
      "need two");
  std::vector<ServerSpec> mixed = {servers_of(8, 400, 1), servers_of(8, 400, 2)};
  REQUIRE_THROWS_WITH(ClosReading(mixed, "dual_tor: true, " + kClos).spec(),
                      "fabric.yaml:2:33: fabric.dual_tor: needs NICs with equally many ports, "
                      "found 1 and 2");
}

TEST_CASE("keys of tiers that few servers do not need are no errors") {
  const std::string keys =
      kCore +
      ", tiers: 3, leaves_per_pod: 8, spine_oversubscription: 2, spine_uplinks: 4, "
      "cores: 8, uplinks: 8, spines: 8, spine_cable: 20 m, core_cable: 50 m";
  REQUIRE(read_clos(4, servers_of(8), kClos + keys).tiers == 1);
  REQUIRE(read_clos(400, servers_of(8), kClos + keys + ", oversubscription: 4").tiers == 3);
}

TEST_CASE("numbers that do not fit three tiers are refused") {
  const auto refused = [](int nodes, const std::string& keys, const std::string& error) {
    REQUIRE_THROWS_WITH(read_clos(nodes, servers_of(8), keys + kClos + kCore), error);
  };
  refused(8193, "",
          "fabric.yaml:1:8: nodes: at most 8192 servers of 8 NICs fit three tiers of "
          "Quantum2-QM9700 below Quantum2-QM9700 below Quantum2-QM9700 of 64 ports, found 8193: "
          "lower nodes or take switches with more ports");
  REQUIRE(read_clos(8192, servers_of(8), kClos + kCore).pods == 64);
  refused(257, "tiers: 2, ",
          "fabric.yaml:1:8: nodes: at most 256 servers of 8 NICs fit two tiers of Quantum2-QM9700 "
          "below Quantum2-QM9700 of 64 ports, found 257: lower nodes or take switches with more "
          "ports");
  refused(300, "leaves_per_pod: 33, ",
          "fabric.yaml:2:39: fabric.leaves_per_pod: expected at most 32, the ports down of a "
          "spine, found \"33\"");
  refused(300, "spine_uplinks: 40, ",
          "fabric.yaml:2:38: fabric.spine_uplinks: 32 ports down and 40 up are more than the 64 "
          "ports of Quantum2-QM9700");
  refused(300, "cores: 33, ",
          "fabric.yaml:2:30: fabric.cores: expected 32, the spines of a pod, times a divisor of "
          "the 32 uplinks of a spine, found \"33\"");
  refused(300, "cores: 32, ",
          "fabric.yaml:2:30: fabric.cores: 3 spines of 32 uplinks need more than the 64 ports of "
          "each of 1 cores");
  REQUIRE_THROWS_WITH(
      read_clos(600, servers_of(8), "leaves_per_pod: 12, " + kRail + kCore),
      "fabric.yaml:2:39: fabric.leaves_per_pod: expected a multiple of 8, the leaves of a group of "
      "servers, and at most 32, the ports down of a spine, found \"12\"");
  REQUIRE_THROWS_WITH(read_clos(600, servers_of(40), kRail + kCore),
                      Catch::Contains("fabric.spine: Quantum2-QM9700 has 64 ports, too few for "
                                      "the 40 leaves of a group of servers and their uplinks"));
}

TEST_CASE("a fat tree that its switches cannot make is refused") {
  const auto refused = [](int nics, const std::string& k, const std::string& error) {
    REQUIRE_THROWS_WITH(
        read_clos(2, servers_of(nics), "k: " + k + ", template: fat-tree, switch: Quantum2-QM9700"),
        "fabric.yaml:2:26: fabric.k: " + error);
  };
  refused(1, "5", "expected an even number, found \"5\"");
  refused(1, "66", "expected at most 64, the ports of Quantum2-QM9700, found \"66\"");
  refused(8, "14", "a switch has 7 ports down, too few for the 8 NICs of a server");
}

TEST_CASE("numbers that contradict the switches are refused") {
  const auto fabric_error = [](const std::string& text) { return "fabric.yaml:2:" + text; };
  REQUIRE_THROWS_WITH(read_clos(8, servers_of(8), "nodes_per_leaf: 9, " + kClos),
                      fabric_error("39: fabric.nodes_per_leaf: expected at most 8, the ports of "
                                   "Quantum2-QM9700 over those of a server, found \"9\""));
  REQUIRE_THROWS_WITH(
      read_clos(32, servers_of(8), "uplinks: 40, " + kClos),
      fabric_error("32: fabric.uplinks: 32 ports down and 40 up are more than the 64 "
                   "ports of Quantum2-QM9700"));
  REQUIRE_THROWS_WITH(read_clos(32, servers_of(8), "spines: 5, " + kClos),
                      fabric_error("31: fabric.spines: expected a divisor of the 32 uplinks of a "
                                   "leaf, found \"5\""));
  REQUIRE_THROWS_WITH(
      read_clos(32, servers_of(8), "spines: 2, " + kClos),
      fabric_error("31: fabric.spines: 8 leaves of 32 uplinks need more than the 64 "
                   "ports of each of 2 spines"));
  REQUIRE_THROWS_WITH(read_clos(2, servers_of(60), "leaf: Quantum2-QM9700, template: clos"),
                      fabric_error("29: fabric.leaf: Quantum2-QM9700 has 64 ports, too few for the "
                                   "60 NICs of a server and their uplinks"));
  REQUIRE_THROWS_WITH(
      read_clos(2, servers_of(100),
                "spine: Quantum2-QM9700, template: rail-optimised, leaf: Tomahawk4"),
      fabric_error("30: fabric.spine: Quantum2-QM9700 has 64 ports, and 100 leaves need one each"));
}

}  // namespace
}  // namespace trainyard
