// SPDX-License-Identifier: Apache-2.0
// Each finding about servers where it belongs; that shipped clusters are clean is in lint_test.cpp.
#include "support/catch.h"

#include "support/built_clusters.h"
#include "support/lint_run.h"

namespace trainyard {
namespace {

LinkSpec local(LinkKind kind, std::int64_t gigabytes, int lanes = 1) {
  return {.kind = kind,
          .bandwidth = gigabytes_per_second(gigabytes),
          .latency = SimTime(1),
          .lanes = lanes};
}

// Two servers of two GPUs on NVLink; `complete` adds what hangs off the CPU and the NIC.
template <typename Complete>
Cluster two_servers(std::uint16_t switch_ports, const Complete& complete) {
  TopologyBuilder builder;
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  for (int index = 0; index < 2; ++index) {
    const ServerId server = builder.add_server();
    const auto add = [&](NodeKind kind, const std::string& name, std::uint16_t ports = 0) {
      return builder.add_node({.kind = kind,
                               .name = "server" + std::to_string(index) + "/" + name,
                               .latency = {},
                               .server = server,
                               .part = 0,
                               .ports = ports});
    };
    const NodeId gpu0 = add(NodeKind::Gpu, "gpu0");
    const NodeId gpu1 = add(NodeKind::Gpu, "gpu1");
    const NodeId nvswitch = add(NodeKind::NvSwitch, "nvswitch", switch_ports);
    builder.add_duplex_link(gpu0, nvswitch, local(LinkKind::NvLink, 100, 4));
    builder.add_duplex_link(gpu1, nvswitch, local(LinkKind::NvLink, 100, 4));
    const NodeId pcie = add(NodeKind::PcieSwitch, "pcie0");
    const NodeId nic = add(NodeKind::Nic, "nic0");
    builder.add_duplex_link(gpu0, pcie, local(LinkKind::Pcie, 50));
    builder.add_duplex_link(nic, pcie, local(LinkKind::Pcie, 50));
    complete(builder, add, gpu1, pcie);
    gpus.insert(gpus.end(), {gpu0, gpu1});
    nics.push_back(nic);
  }
  const NodeId hub = add_switch(builder, "hub");
  for (const NodeId nic : nics) {
    builder.add_duplex_link(nic, hub, fabric_link(gigabits_per_second(200), SimTime(1)));
  }
  Cluster cluster =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(gpus)});
  cluster.nodes = 2;
  cluster.gpus_per_node = 2;
  cluster.server_gpus = {2, 2};
  cluster.nics_per_node = 1;
  return cluster;
}

const auto kWhole = [](TopologyBuilder& builder, const auto& /*add*/, NodeId gpu1, NodeId pcie) {
  builder.add_duplex_link(gpu1, pcie, local(LinkKind::Pcie, 50));
};

}  // namespace

TEST_CASE("lanes beyond the ports of an NVSwitch are an error") {
  REQUIRE(lint(two_servers(8, kWhole)).empty());
  REQUIRE(findings_of(two_servers(7, kWhole), "ports") ==
          Lines{"error: server0/nvswitch uses 8 ports, and  has 7 (2 servers alike)"});
}

TEST_CASE("a GPU without a NIC beside others that have one is named") {
  const auto alone = [](TopologyBuilder&, const auto&, NodeId, NodeId) {};
  REQUIRE(findings_of(two_servers(0, alone), "gpu-without-nic") ==
          Lines{"warning: server0/gpu1: no way to a NIC, which other GPUs of the server have (2 "
                "servers alike)"});
  REQUIRE(findings_of(two_servers(0, kWhole), "gpu-without-nic").empty());
}

TEST_CASE("a NIC in a slot of too few lanes is slower than its port") {
  // 48 GB/s of 400G against half of 56.4 GB/s.
  const auto of_lanes = [](int lost) {
    return shipped_cluster(
        "dgx-h100", {.settings = {"faults=[{between: [server1/nic2, server1/pcie2], lanes: " +
                                  std::to_string(lost) + "}]"}});
  };
  REQUIRE(findings_of(of_lanes(2), "nic-pcie").empty());
  REQUIRE(findings_of(of_lanes(8), "nic-pcie") ==
          Lines{"warning: server1/nic2: 48 GB/s into the fabric, but 28.2 GB/s of PCIe"});
}

TEST_CASE("a GPU with less PCIe than its NICs together is named") {
  const Cluster cluster = shipped_cluster(
      "dgx-h100", {.settings = {"faults=[{between: [server0/gpu5, server0/pcie5], lanes: 12}]"}});
  REQUIRE(findings_of(cluster, "gpu-pcie") ==
          Lines{"warning: server0/gpu5: 14.1 GB/s to the host, but its share of the NICs is "
                "48 GB/s"});
}

TEST_CASE("a NIC beyond a CPU is too far for GPUDirect") {
  const Cluster cluster =
      shipped_cluster("h100-1gpu-400g", {.settings = {"server.pcie_switches=0"}});
  REQUIRE(findings_of(cluster, "gpudirect") ==
          Lines{"warning: server0/gpu0: the NIC is beyond a CPU, too far for GPUDirect: data is "
                "copied through host memory (10 servers alike)"});
}

TEST_CASE("NICs that no GPU in use sends by are a note") {
  REQUIRE(findings_of(shipped_cluster("dgx-h100", {.gpus_per_node = 5}), "idle-nic") ==
          Lines{"note: server0/nic5 and 2 more: no GPU in use sends by it (4 servers alike)"});
}

TEST_CASE("devices that share the way to the CPU are a note where it is narrower") {
  const auto with_uplink = [](std::int64_t gigabytes) {
    return [gigabytes](TopologyBuilder& builder, const auto& add, NodeId gpu1, NodeId pcie) {
      builder.add_duplex_link(gpu1, pcie, local(LinkKind::Pcie, 50));
      builder.add_duplex_link(pcie, add(NodeKind::Cpu, "cpu0"), local(LinkKind::Pcie, gigabytes));
    };
  };
  REQUIRE(findings_of(two_servers(0, with_uplink(150)), "pcie-uplink").empty());
  REQUIRE(findings_of(two_servers(0, with_uplink(149)), "pcie-uplink") ==
          Lines{"note: server0/pcie0: devices of 150 GB/s share 149 GB/s to the CPU (2 servers "
                "alike)"});
}

TEST_CASE("a link that every route avoids is a note") {
  // Two CPUs below one PCIe switch: the way through it costs less than the link between sockets.
  const auto odd = [](TopologyBuilder& builder, const auto& add, NodeId gpu1, NodeId pcie) {
    builder.add_duplex_link(gpu1, pcie, local(LinkKind::Pcie, 50));
    const NodeId cpu0 = add(NodeKind::Cpu, "cpu0");
    const NodeId cpu1 = add(NodeKind::Cpu, "cpu1");
    builder.add_duplex_link(pcie, cpu0, local(LinkKind::Pcie, 400));
    builder.add_duplex_link(pcie, cpu1, local(LinkKind::Pcie, 400));
    builder.add_duplex_link(cpu0, cpu1, local(LinkKind::Socket, 30));
  };
  REQUIRE(
      findings_of(two_servers(0, odd), "unused-links") ==
      Lines{"note: 2 of 2 socket links of server0 are on no route, server0/cpu0 -> server0/cpu1 "
            "the first (2 servers alike)"});
}

TEST_CASE("what is not looked at is said") {
  const Cluster cluster = shipped_cluster("rtx4090-pcie", {.settings = {"server.gpus=600"}});
  const auto lines = findings_of(cluster, "not-checked");
  REQUIRE(lines.size() == 1);
  REQUIRE(lines[0].find("note: unused links inside server0: 60") == 0);
}

}  // namespace trainyard
