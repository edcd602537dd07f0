// SPDX-License-Identifier: Apache-2.0
// Free graphs: what is written is built, and what is wrong is said.
#include "support/catch.h"

#include "topology/fabric/graph.h"

#include <string>
#include <vector>

#include "support/clusters.h"

namespace trainyard {
namespace {

using namespace literals;

const std::string kTwo =
    "template: graph, cable: 2 m, switches: [{name: a, part: Rosetta}, {name: b, part: Rosetta}], "
    "links: [{from: server0/nic0, to: a}, {from: server1/nic0, to: b}, ";

TEST_CASE("switches and cables of a graph are those of the file") {
  const Cluster cluster =
      cluster_of(2, 1, kTwo + "{from: a, to: b, count: 3, cable: 20 m, rate: 100 Gb/s}]");
  REQUIRE(cluster.warnings.empty());
  REQUIRE(switch_count(cluster.topology) == 2);
  REQUIRE(trunk_count(cluster.topology) == 6);
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  const double efficiency = shipped_catalogue().nics().at("ConnectX-7").efficiency.value;
  REQUIRE(path_bandwidth(cluster.topology, path) == gigabits_per_second(100).scaled(efficiency));
  const auto from = cluster.topology.find("a");
  for (const LinkId link : cluster.topology.links_from(*from)) {
    if (cluster.topology.link(link).target == cluster.topology.find("b")) {
      REQUIRE(cluster.topology.link(link).spec.latency == 100_ns + 100_ns);  // 20 m and FEC.
    }
  }
}

TEST_CASE("two servers may be joined back to back") {
  const Cluster cluster =
      cluster_of(2, 2,
                 "template: graph, cable: 1 m, links: [{from: server0/nic0, to: server1/nic0}, "
                 "{from: server0/nic1, to: server1/nic1}]");
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  REQUIRE(switch_count(cluster.topology) == 0);
}

TEST_CASE("three hosts may be joined without a switch, each cable at the rate of a port") {
  ConfigDocument document = ConfigDocument::parse(
      "name: three\nsource: a test\nnodes: 3\n"
      "server: {template: pcie, gpu: RTX-4090, gpus: 1, nic: ConnectX-7-2x200G, nics: 1}\n"
      "fabric: {template: graph, cable: 2 m, links: [{from: server0/nic0, to: server1/nic0},\n"
      "  {from: server1/nic0, to: server2/nic0}, {from: server2/nic0, to: server0/nic0}]}\n",
      "three.yaml");
  const Cluster cluster = build_cluster(document, shipped_catalogue(), {});
  int cables = 0;
  for (const Link& link : cluster.topology.links()) {
    if (link.spec.kind == LinkKind::Network) {
      ++cables;
      REQUIRE(link.spec.bandwidth == Bandwidth(192'000'000'000));  // 96 % of a port.
    }
  }
  REQUIRE(cables == 6);
}

TEST_CASE("switches may be counted, and what has no link is a warning") {
  const Cluster cluster =
      cluster_of(3, 2,
                 "template: graph, cable: 1 m, switches: [{name: s, part: Rosetta, count: 3}], "
                 "links: [{from: server0/nic0, to: s1}, {from: server1/nic0, to: s1}]");
  REQUIRE(cluster.topology.find("s2"));
  REQUIRE(cluster.warnings ==
          std::vector<std::string>{"6 switches and NICs have no link of the fabric: s0, s2, "
                                   "server0/nic1, server1/nic1, ..."});
}

TEST_CASE("GPUs are ends of a graph that attaches them") {
  const Cluster cluster =
      cluster_of(2, 0,
                 "template: graph, cable: 1 m, attach: gpu, "
                 "links: [{from: server0/gpu0, to: server1/gpu0, rate: 800 Gb/s}]");
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  REQUIRE(path.size() == 1);
}

TEST_CASE("mistakes in a graph are named") {
  const auto fails = [](const std::string& fabric, const std::string& error) {
    REQUIRE_THROWS_WITH(cluster_of(2, 1, fabric), Catch::Contains(error));
  };
  fails(kTwo + "{from: a, to: c}]", "to: expected a switch of fabric.switches, or a NIC such as");
  fails(kTwo + "{from: server2/nic0, to: a}]", "from: expected a switch");
  fails(kTwo + "{from: a, to: a}]", "to: expected another device than from");
  fails(kTwo + "{from: a, to: b, count: 64}]", "the links of a need more than its 64 ports");
  fails(kTwo + "{from: a, to: b, rate: 400 Gb/s}]", "rate: expected at most");
  fails(
      "template: graph, cable: 1 m, switches: [{name: a, part: Tomahawk4}], "
      "links: [{from: server0/nic0, to: a, count: 2}]",
      "the links of server0/nic0 need more than its");
  fails(
      "template: graph, cable: 1 m, switches: [{name: a, part: Rosetta}, {name: a, part: "
      "Rosetta}], links: []",
      "there is a switch a already");
  fails(
      "template: graph, switches: [{name: a, part: Rosetta}], "
      "links: [{from: server0/nic0, to: a}]",
      "cable");
  fails(
      "template: graph, cable: 1 m, attach: gpu, "
      "links: [{from: server0/gpu0, to: server1/gpu0}]",
      "rate");
}

}  // namespace
}  // namespace trainyard
