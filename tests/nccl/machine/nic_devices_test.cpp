// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/nic_devices.h"

#include <string>
#include <vector>

#include "support/nccl_timing.h"
#include "topology/graph/path.h"

namespace trainyard::nccl {
namespace {

NicDevices devices_of(const Cluster& cluster, bool merges = true) {
  std::vector<std::vector<ServerId>> servers;
  for (std::uint32_t server = 0; server < cluster.topology.server_count(); ++server) {
    servers.push_back({ServerId(server)});
  }
  return {cluster.topology, servers, std::vector<int>(servers.size(), 0), merges};
}

Cluster pulled(const std::string& name, int nodes, const std::string& cable) {
  return shipped_cluster(name, {.nodes = nodes, .pulls = {cable}});
}

std::string nic_name(const Cluster& cluster, const NicDevice& device) {
  return cluster.topology.node(device.nic).name;
}

// From the nodes of a route on, the first cable and the last.
std::pair<LinkId, LinkId> cables_of(const Cluster& cluster, const ConnectionSpec& pair) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(pair.source, pair.target, pair.flow_label, path, 0, pair.nic_turns));
  return {path.front(), path.back()};
}

}  // namespace

TEST_CASE("every port has a number, and merged ones that of the first", "[nccl]") {
  for (const char* const name : {"oci-h100", "alibaba-hpn"}) {
    const Cluster cluster = shipped_cluster(name, {.nodes = 2});
    const NicDevices merged = devices_of(cluster);
    const NicDevices apart = devices_of(cluster, false);
    for (int nic = 0; nic < 8; ++nic) {
      const std::string expected = "server1/nic" + std::to_string(nic);
      REQUIRE(nic_name(cluster, merged.device(1, 2 * nic)) == expected);
      REQUIRE(merged.device(1, 2 * nic).ports == 2);
      for (int port = 0; port < 2; ++port) {
        const NicDevice& device = apart.device(1, 2 * nic + port);
        REQUIRE(nic_name(cluster, device) == expected);
        REQUIRE(device.first_port == port);
        REQUIRE(device.ports == 1);
      }
    }
  }
}

TEST_CASE("a connection has a queue pair on each port, at both ends the same", "[nccl]") {
  for (const char* const name : {"oci-h100", "alibaba-hpn"}) {
    const Cluster cluster = shipped_cluster(name, {.nodes = 2});
    for (const bool merges : {true, false}) {
      const NicDevices devices = devices_of(cluster, merges);
      for (std::uint32_t label = 0; label < 16; ++label) {
        const auto pairs = devices.queue_pairs(devices.device(0, 6), devices.device(1, 6), label);
        REQUIRE(pairs.size() == (merges ? 2 : 1));
        const auto first = cables_of(cluster, pairs.front());
        const auto last = cables_of(cluster, pairs.back());
        REQUIRE((first.first != last.first) == merges);
        REQUIRE((first.second != last.second) == merges);
        // In one plane, or below one leaf.
        const Topology& topology = cluster.topology;
        REQUIRE(topology.link(first.first).target == topology.link(first.second).source);
      }
    }
  }
}

TEST_CASE("a NIC with one cable has one queue pair, however many its ports", "[nccl]") {
  const Cluster cluster =
      shipped_cluster("oci-h100", {.nodes = 2, .settings = {"fabric.dual_tor=false"}});
  const NicDevices devices = devices_of(cluster);
  const auto pairs = devices.queue_pairs(devices.device(0, 2), devices.device(1, 2), 3);
  REQUIRE(pairs.size() == 1);
  REQUIRE(!pairs.front().nic_turns);
}

TEST_CASE("of a port that is cut off the other carries all", "[nccl]") {
  const Cluster cluster = pulled("alibaba-hpn", 2, "server1/nic3,plane1-leaf3");
  const NicDevices devices = devices_of(cluster);
  const auto pairs = devices.queue_pairs(devices.device(0, 6), devices.device(1, 6), 0);
  REQUIRE(pairs.size() == 2);
  REQUIRE(cables_of(cluster, pairs[0]) == cables_of(cluster, pairs[1]));
}

TEST_CASE("NICs that are not plugged in at both ends have no number", "[nccl]") {
  for (const char* const cable :
       {"server1/nic0,leaf0", "server1/nic0", "server1/nic0,server1/pcie0"}) {
    INFO(cable);
    const Cluster cluster = pulled("dgx-h100", 2, cable);
    const NicDevices devices = devices_of(cluster);
    REQUIRE(nic_name(cluster, devices.device(0, 0)) == "server0/nic0");
    REQUIRE(nic_name(cluster, devices.device(1, 0)) == "server1/nic1");
    REQUIRE(nic_name(cluster, devices.device(1, 6)) == "server1/nic7");
  }
}

TEST_CASE("the first NIC of a group has its number", "[nccl]") {
  const Cluster cluster = shipped_cluster("aws-p5", {.nodes = 2});
  const NicDevices devices = devices_of(cluster);
  REQUIRE(nic_name(cluster, devices.device(1, 1)) == "server1/nic4");
  const NicDevice& device = devices.device(1, 1);
  REQUIRE(devices.group_of(device.nic).size() == 4);
  for (const NodeId nic : devices.group_of(device.nic)) {
    REQUIRE(devices.devices_of(nic) == std::vector<NicDevice>{device});
  }
  const auto pairs = devices.queue_pairs(devices.device(0, 1), device, 0);
  REQUIRE(pairs.size() == 4);
  REQUIRE(pairs[3].target == devices.group_of(device.nic)[3]);
}

// The numbers of planner and topology are the same NICs: none is farther from the GPU at
// the end of a ring than the search says.
TEST_CASE("rings leave and enter by NICs as near as the search says", "[nccl][timing]") {
  for (const char* const name :
       {"oci-h100", "alibaba-hpn", "oci-a100", "dgx-h100", "superpod-a100", "aws-p5", "aws-p4d",
        "azure-nd-a100-v4", "gcp-a3-high", "hgx-b300", "meta-24k", "polaris", "gb200-nvl72"}) {
    for (const bool merges : {true, false}) {
      const TimedJob job(
          shipped_cluster(name, {.nodes = name == std::string("gb200-nvl72") ? 36 : 2}),
          {{"NCCL_NET_MERGE_LEVEL", merges ? "PORT" : "LOC"}});
      INFO(name << " " << merges);
      const Communicator& communicator = job.communicator;
      const bool is_near = communicator.aligned.ring.type_inter <= PathType::Pxb;
      Wiring wiring(job.cluster, communicator, job.environment);
      for (std::size_t c = 0; c < communicator.rings.size(); ++c) {
        const std::vector<int>& order = communicator.rings[c].order;
        for (std::size_t i = 0; i < order.size(); ++i) {
          const int from = order[i];
          const int to = order[(i + 1) % order.size()];
          if (wiring.node_of(from) == wiring.node_of(to)) {
            continue;
          }
          const auto nics = [&](int rank) -> const NodeNics& {
            return communicator.nics[static_cast<std::size_t>(
                communicator.node_kind[static_cast<std::size_t>(wiring.node_of(rank))])];
          };
          const NetworkEnds ends = wiring.ends({.from = from,
                                                .to = to,
                                                .channel = static_cast<int>(c),
                                                .nic_out = nics(from).ring_out[c],
                                                .nic_in = nics(to).ring_in[c]});
          for (const auto* const path : {&ends.outward, &ends.inward}) {
            REQUIRE((path_distance(job.cluster.topology, *path) <= Distance::Pxb || !is_near));
          }
        }
      }
    }
  }
}

}  // namespace trainyard::nccl
