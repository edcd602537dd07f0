// SPDX-License-Identifier: Apache-2.0
// The size of fabrics: against the counts that NVIDIA publishes, by formula, and at the limits.
#include "support/catch.h"

#include "topology/clos.h"

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

const Catalogue& catalogue() {
  static const Catalogue instance =
      Catalogue::load(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs/hardware");
  return instance;
}

ServerSpec servers_of(int nics, std::int64_t nic_gigabits = 400) {
  ServerSpec server;
  server.nics = nics;
  server.nic_speed = gigabits_per_second(nic_gigabits);
  server.network_efficiency = 0.96;
  return server;
}

// A fabric for `nodes` equal servers while it is read.
class Reading {
 public:
  Reading(int nodes, const ServerSpec& server, const std::string& fabric)
      : server_(server),
        servers_(static_cast<std::size_t>(nodes), &server_),
        document_(ConfigDocument::parse(
            "nodes: " + std::to_string(nodes) + "\nfabric: {cable: 10 m, " + fabric + "}\n",
            "fabric.yaml")),
        nodes_(document_.root().required("nodes")),
        fabric_(document_.root().required("fabric")) {}

  ClosSpec spec() {
    static constexpr std::array<std::string_view, 4> templates = {"single-switch", "clos",
                                                                  "rail-optimised", "fat-tree"};
    const auto layout =
        static_cast<ClosTemplate>(fabric_.required("template").as_choice(templates));
    const ClosSpec spec = read_clos_spec(context(), layout);
    document_.finish();
    return spec;
  }
  std::unique_ptr<Fabric> fabric() {
    std::unique_ptr<Fabric> fabric = read_fabric(context());
    document_.finish();
    return fabric;
  }

 private:
  FabricContext context() {
    return {.node = fabric_,
            .nodes = nodes_,
            .servers = servers_,
            .catalogue = catalogue(),
            .parts = parts_};
  }

  ServerSpec server_;
  std::vector<const ServerSpec*> servers_;
  ConfigDocument document_;
  ConfigNode nodes_;
  ConfigNode fabric_;
  PartLog parts_;
};

ClosSpec read(int nodes, const ServerSpec& server, const std::string& fabric) {
  return Reading(nodes, server, fabric).spec();
}

const std::string kRail = "template: rail-optimised, leaf: Quantum2-QM9700, spine: Quantum2-QM9700";
const std::string kClos = "template: clos, leaf: Quantum2-QM9700, spine: Quantum2-QM9700";
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
    const ClosSpec spec = read(row.nodes, servers_of(8, 800), fabric);
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

TEST_CASE("a Clos keeps whole servers below a leaf and has as many ports up as down") {
  for (const int nodes : {9, 16, 32, 100, 256}) {
    INFO(nodes << " servers");
    const ClosSpec spec = read(nodes, servers_of(8), kClos);
    REQUIRE(spec.servers_per_leaf == 4);
    REQUIRE(spec.leaves == (nodes + 3) / 4);
    REQUIRE(spec.uplinks == 32);
    REQUIRE(spec.uplinks % spec.spines == 0);
    REQUIRE(spec.leaves * spec.uplinks <= spec.spines * 64);
  }
}

TEST_CASE("a Clos that fits one leaf has no spine") {
  const ClosSpec spec = read(8, servers_of(8), kClos);
  REQUIRE(spec.leaves == 1);
  REQUIRE(spec.spines == 0);
}

TEST_CASE("oversubscription gives a leaf more ports down than up") {
  const ClosSpec spec = read(64, servers_of(8), kClos + ", oversubscription: 3");
  REQUIRE(spec.servers_per_leaf == 6);  // 48 ports down, 16 up.
  REQUIRE(spec.uplinks == 16);
  REQUIRE(spec.leaves == 11);
  const ClosSpec rail = read(48, servers_of(8), kRail + ", oversubscription: 3");
  REQUIRE(rail.servers_per_leaf == 48);
  REQUIRE(rail.uplinks == 16);
}

TEST_CASE("links run at the slower end's rate, with FEC, cable and optics in their latency") {
  const ClosSpec spec = read(32, servers_of(8, 200), kClos + ", spine_cable: 30 m, optics: true");
  REQUIRE(spec.host_links[0].bandwidth == gigabits_per_second(192));
  REQUIRE(spec.host_links[0].latency == 50_ns + 100_ns + 100_ns);
  REQUIRE(spec.spine_link.bandwidth == gigabits_per_second(384));
  REQUIRE(spec.spine_link.latency == 150_ns + 100_ns + 100_ns);
  REQUIRE(spec.leaf.latency == 130_ns);
}

TEST_CASE("routing is read with its seed") {
  const auto plain = Reading(2, servers_of(8), kClos).fabric();
  REQUIRE(plain->routing().policy == RoutingPolicy::EcmpHash);
  const auto chosen =
      Reading(2, servers_of(8), kClos + ", routing: static, routing_seed: 5").fabric();
  REQUIRE(chosen->routing().policy == RoutingPolicy::Static);
  REQUIRE(chosen->routing().seed == 5);
}

TEST_CASE("a fabric has the nodes and links that its size says") {
  for (const int nodes : {1, 5, 33, 64}) {
    for (const std::string& layout : {kRail, kClos}) {
      INFO(nodes << " servers, " << layout);
      const ClosSpec spec = read(nodes, servers_of(8), layout);
      TopologyBuilder builder;
      std::vector<ServerNodes> servers(static_cast<std::size_t>(nodes));
      for (ServerNodes& server : servers) {
        for (int nic = 0; nic < 8; ++nic) {
          server.nics.push_back(builder.add_node({.kind = NodeKind::Nic, .name = "nic"}));
        }
      }
      Reading(nodes, servers_of(8), layout).fabric()->add_to(builder, servers);
      const Topology topology = std::move(builder).build();
      const int links = nodes * 8 + spec.leaves * spec.uplinks * (spec.spines > 0 ? 1 : 0);
      REQUIRE(topology.node_count() ==
              static_cast<std::uint32_t>(nodes * 8 + spec.leaves + spec.spines));
      REQUIRE(topology.link_count() == static_cast<std::uint32_t>(2 * links));
    }
  }
}

TEST_CASE("a fabric that does not fit says how many servers would") {
  REQUIRE_THROWS_WITH(
      read(257, servers_of(8), kRail),
      "fabric.yaml:1:8: nodes: at most 256 servers of 8 NICs fit two tiers of "
      "Quantum2-QM9700 below Quantum2-QM9700 of 64 ports, found 257: lower nodes, take "
      "switches with more ports or give a core");
  REQUIRE(read(256, servers_of(8), kRail).leaves == 64);
  REQUIRE_THROWS_WITH(
      read(1'000'000, servers_of(8), kClos),
      "fabric.yaml:1:8: nodes: at most 256 servers of 8 NICs fit two tiers of "
      "Quantum2-QM9700 below Quantum2-QM9700 of 64 ports, found 1000000: lower nodes, "
      "take switches with more ports or give a core");
}

TEST_CASE("numbers that contradict the switches are refused") {
  const auto fabric_error = [](const std::string& text) { return "fabric.yaml:2:" + text; };
  REQUIRE_THROWS_WITH(read(8, servers_of(8), "nodes_per_leaf: 9, " + kClos),
                      fabric_error("39: fabric.nodes_per_leaf: expected at most 8, the ports of "
                                   "Quantum2-QM9700 over those of a server, found \"9\""));
  REQUIRE_THROWS_WITH(
      read(32, servers_of(8), "uplinks: 40, " + kClos),
      fabric_error("32: fabric.uplinks: 32 ports down and 40 up are more than the 64 "
                   "ports of Quantum2-QM9700"));
  REQUIRE_THROWS_WITH(read(32, servers_of(8), "spines: 5, " + kClos),
                      fabric_error("31: fabric.spines: expected a divisor of the 32 uplinks of a "
                                   "leaf, found \"5\""));
  REQUIRE_THROWS_WITH(
      read(32, servers_of(8), "spines: 2, " + kClos),
      fabric_error("31: fabric.spines: 8 leaves of 32 uplinks need more than the 64 "
                   "ports of each of 2 spines"));
  REQUIRE_THROWS_WITH(read(2, servers_of(60), "leaf: Quantum2-QM9700, template: clos"),
                      fabric_error("29: fabric.leaf: Quantum2-QM9700 has 64 ports, too few for the "
                                   "60 NICs of a server and their uplinks"));
  REQUIRE_THROWS_WITH(
      read(2, servers_of(100), "spine: Quantum2-QM9700, template: rail-optimised, leaf: Tomahawk4"),
      fabric_error("30: fabric.spine: Quantum2-QM9700 has 64 ports, and 100 leaves need one each"));
}

}  // namespace
}  // namespace trainyard
