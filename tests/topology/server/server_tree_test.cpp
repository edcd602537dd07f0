// SPDX-License-Identifier: Apache-2.0
// The tree of PCIe: who hangs off what, at what rate and latency.
#include "support/catch.h"

#include "topology/server/server_keys.h"

#include <string>
#include <vector>

#include "support/described_servers.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("devices are dealt over PCIe switches and sockets evenly and in order") {
  const BuiltServer box = build_server(even_server("nvswitch", "H100-SXM", 8, 4, 4, 2));
  std::vector<std::string> hosts;
  for (const NodeId gpu : box.nodes.gpus) {
    hosts.push_back(host_of(box.topology, gpu));
  }
  REQUIRE(hosts == std::vector<std::string>{"pcie0", "pcie0", "pcie1", "pcie1", "pcie2", "pcie2",
                                            "pcie3", "pcie3"});
  REQUIRE(host_of(box.topology, box.nodes.nics[0]) == "pcie0");
  REQUIRE(host_of(box.topology, box.nodes.nics[3]) == "pcie3");
  const BuiltServer bare = build_server(even_server("pcie", "RTX-4090", 8, 0, 0, 2));
  REQUIRE(host_of(bare.topology, bare.nodes.gpus[3]) == "cpu0");
  REQUIRE(host_of(bare.topology, bare.nodes.gpus[4]) == "cpu1");
}

TEST_CASE("rates are lanes times rate times efficiency") {
  const ServerSpec spec = read_server_text(even_server("nvswitch", "H100-SXM", 8, 8, 8, 2));
  REQUIRE(spec.scale_up.bundle(spec.scale_up_links).bandwidth == gigabytes_per_second(369));
  REQUIRE(spec.scale_up.bundle(spec.scale_up_links).lanes == 18);
  // 63.0 GB/s after encoding, 256-byte payloads: 1024 / 1144.
  REQUIRE(spec.gpu_specs[0].host.link.bandwidth.gigabytes_per_second() ==
          Approx(56.4).epsilon(0.001));
  REQUIRE(spec.nic_speed == gigabits_per_second(400));
  REQUIRE(spec.network_efficiency == 0.96);
  REQUIRE(spec.socket_link.bandwidth == gigabytes_per_second(22));
}

TEST_CASE("the uplink of a PCIe switch and the payload can be given") {
  const std::string base = even_server("nvswitch", "H100-SXM", 8, 8, 8, 1);
  const ServerSpec spec = read_server_text(base + "pcie_uplink: PCIe4\npcie_uplink_lanes: 8\n");
  REQUIRE(spec.switch_specs[0].host.link.bandwidth.gigabytes_per_second() ==
          Approx(14.1).epsilon(0.001));
  const ServerSpec small = read_server_text(base + "pcie_payload: 128 B\n");
  REQUIRE(small.gpu_specs[0].host.link.bandwidth.gigabytes_per_second() ==
          Approx(51.0).epsilon(0.001));
  REQUIRE(small.nic_specs[0].host.link.bandwidth == small.gpu_specs[0].host.link.bandwidth);
}

TEST_CASE("a GPU behind C2C hangs off its CPU, whatever PCIe switches there are") {
  const BuiltServer grace = build_server(even_server("full-mesh", "GH200", 4, 4, 4, 4));
  REQUIRE(host_of(grace.topology, grace.nodes.gpus[2]) == "cpu2");
  REQUIRE(host_of(grace.topology, grace.nodes.nics[2]) == "pcie2");
}

// Hosts of all GPUs, then of all NICs.
std::vector<std::string> hosts(const BuiltServer& box) {
  std::vector<std::string> names;
  for (const auto* nodes : {&box.nodes.gpus, &box.nodes.nics}) {
    for (const NodeId node : *nodes) {
      names.push_back(host_of(box.topology, node));
    }
  }
  return names;
}

void require_same(const Topology& a, const Topology& b) {
  REQUIRE(a.node_count() == b.node_count());
  REQUIRE(a.link_count() == b.link_count());
  for (std::uint32_t index = 0; index < a.node_count(); ++index) {
    REQUIRE(a.node(NodeId(index)).name == b.node(NodeId(index)).name);
    REQUIRE(a.node(NodeId(index)).latency == b.node(NodeId(index)).latency);
  }
  for (std::uint32_t index = 0; index < a.link_count(); ++index) {
    const Link& one = a.link(LinkId(index));
    const Link& other = b.link(LinkId(index));
    REQUIRE(one.source == other.source);
    REQUIRE(one.target == other.target);
    REQUIRE(one.spec.bandwidth == other.spec.bandwidth);
    REQUIRE(one.spec.latency == other.spec.latency);
  }
}

const std::string kPcie =
    "template: pcie\ngpu: L40S\nnic: ConnectX-7\nsocket_link: xGMI-EPYC-Rome\n";

SimTime latency(const BuiltServer& box, std::size_t from, std::size_t to) {
  Routing routing(box.topology, {});
  std::vector<LinkId> path;
  REQUIRE(routing.route(box.nodes.gpus[from], box.nodes.gpus[to], 0, path));
  return path_latency(box.topology, path);
}

TEST_CASE("an even tree written out is the tree that the numbers give") {
  const std::string rest = "template: nvswitch\ngpu: H100-SXM\nnic: ConnectX-7\ncpu: EPYC-Genoa\n";
  const BuiltServer numbers =
      build_server(rest + "gpus: 8\nnics: 4\npcie_switches: 4\nsockets: 2\n");
  const BuiltServer tree = build_server(rest +
                                        "tree:\n"
                                        "  - - {switch: [gpu, gpu, nic], times: 2}\n"
                                        "  - - {switch: [gpu, gpu, nic], times: 2}\n");
  require_same(numbers.topology, tree.topology);
  const BuiltServer bare = build_server(kPcie + "gpus: 4\nsockets: 2\n");
  require_same(bare.topology, build_server(kPcie + "tree: [[gpu, gpu], [gpu, gpu]]\n").topology);
}

TEST_CASE("levels of switches nest, and devices are numbered as they stand") {
  const BuiltServer box = build_server(kPcie +
                                       "tree:\n"
                                       "  - - {switch: [{switch: [gpu, gpu]}, nic], times: 2}\n"
                                       "    - gpu\n"
                                       "  - - {nic: ConnectX-6, times: 2}\n");
  // Switches 0 and 2 are the outer ones.
  REQUIRE(hosts(box) == std::vector<std::string>{"pcie1", "pcie1", "pcie3", "pcie3", "cpu0",
                                                 "pcie0", "pcie2", "cpu1", "cpu1"});
  const auto joined = [&](const char* below, const char* above) {
    return find_link(box.topology, *box.topology.find(below), *box.topology.find(above)) != nullptr;
  };
  REQUIRE(joined("server0/pcie1", "server0/pcie0"));
  REQUIRE(!joined("server0/pcie1", "server0/cpu0"));
  REQUIRE(joined("server0/pcie0", "server0/cpu0"));
  REQUIRE(joined("server0/pcie3", "server0/pcie2"));
}

TEST_CASE("DGX-2: two GPUs and a NIC on a leaf, two leaves below a middle switch") {
  const BuiltServer box = build_server(
      "template: nvswitch\ngpu: V100-SXM2-32GB\ngpus: 16\nnic: ConnectX-5\nnics: 8\n"
      "cpu: Xeon-Skylake\n"
      "tree:\n"
      "  - &socket\n"
      "    - {switch: [{switch: [gpu, gpu, nic], times: 2}], times: 2}\n"
      "  - *socket\n");
  REQUIRE(box.nodes.gpus.size() == 16);
  REQUIRE(box.nodes.nics.size() == 8);
  REQUIRE(box.nodes.cpus.size() == 2);
  int switches = 0;
  for (std::uint32_t node = 0; node < box.topology.node_count(); ++node) {
    switches += box.topology.node(NodeId(node)).kind == NodeKind::PcieSwitch ? 1 : 0;
  }
  REQUIRE(switches == 8 + 4);
}

TEST_CASE("a switch has the uplink that is written at it, else that of the server or of the GPU") {
  const auto uplink = [](const std::string& keys, const std::string& branch) {
    const BuiltServer box =
        build_server("template: pcie\ngpu: H100-PCIe\n" + keys + "tree: [[" + branch + "]]\n");
    const Link* link = find_link(box.topology, *box.topology.find("server0/pcie0"),
                                 *box.topology.find("server0/cpu0"));
    return link->spec.bandwidth.gigabytes_per_second();
  };
  REQUIRE(uplink("", "{switch: [gpu]}") == Approx(56.4).epsilon(0.001));
  REQUIRE(uplink("", "{switch: [gpu], lanes: 8}") == Approx(28.2).epsilon(0.001));
  REQUIRE(uplink("", "{switch: [gpu], uplink: PCIe4, lanes: 8}") == Approx(14.1).epsilon(0.001));
  REQUIRE(uplink("pcie_uplink: PCIe4\n", "{switch: [gpu]}") == Approx(28.2).epsilon(0.001));
  REQUIRE(uplink("pcie_uplink: PCIe4\n", "{switch: [gpu], uplink: PCIe5}") ==
          Approx(56.4).epsilon(0.001));
}

TEST_CASE("NICs of several parts keep their own rates") {
  const ServerSpec spec = read_server_text(
      kPcie + "tree: [[gpu, nic, {nic: ConnectX-6, times: 2}, {nic: EFA-100G}]]\n");
  REQUIRE(spec.nics == 4);
  REQUIRE(!spec.has_equal_nics());
  REQUIRE(spec.nic_specs[0].speed() == gigabits_per_second(400));
  REQUIRE(spec.nic_specs[1].port_speed == gigabits_per_second(200));
  REQUIRE(spec.nic_specs[3].speed() == gigabits_per_second(100));
  REQUIRE(spec.nic_speed == gigabits_per_second(100));
  REQUIRE(read_server_text(kPcie + "tree: [[gpu, nic, {nic: ConnectX-7}]]\n").has_equal_nics());
}

TEST_CASE("through a CPU costs one root complex, within a socket and across") {
  // Of PCIe 4 in the catalogue, in ns: link and GPU 280, switch 115, root complex 300; xGMI 70.
  const BuiltServer box = build_server(kPcie +
                                       "tree:\n"
                                       "  - [gpu, gpu, {switch: [gpu]}]\n"
                                       "  - [gpu, {switch: [gpu]}]\n");
  REQUIRE(latency(box, 0, 1) == 280_ns * 2 + 300_ns);
  // 0.84 us on one socket and 0.91 across were measured for reads of 128 bytes, on two machines.
  REQUIRE(latency(box, 0, 3) == 280_ns * 2 + 300_ns + 70_ns);
  REQUIRE(latency(box, 0, 2) == 280_ns * 2 + 300_ns + 115_ns + 5_ns);
  REQUIRE(latency(box, 2, 4) == 280_ns * 2 + 300_ns + 70_ns + (115_ns + 5_ns) * 2);
}

TEST_CASE("branches of one root complex share its limit, and two cost 10 ns more") {
  const BuiltServer box = build_server(
      "template: pcie\ngpu: H100-PCIe\n"
      "tree:\n"
      "  - - {root: [{switch: [gpu, gpu], times: 2}], bandwidth: 73 GB/s, times: 2}\n");
  const NodeId root = *box.topology.find("server0/root1");
  REQUIRE(box.topology.node(root).kind == NodeKind::RootComplex);
  const Link* up = find_link(box.topology, root, box.nodes.cpus[0]);
  REQUIRE(up->spec.bandwidth == gigabytes_per_second(73));
  REQUIRE(find_link(box.topology, *box.topology.find("server0/pcie3"), root) != nullptr);
  // Two switches and one root complex: 1039 to 1116 ns were measured; two of them: 1072 for 1062.
  const SimTime one = latency(box, 0, 2);
  REQUIRE(one == 280_ns * 2 + (115_ns + 5_ns) * 2 + 300_ns);
  REQUIRE(one > 1039_ns);
  REQUIRE(one < 1116_ns);
  REQUIRE(latency(box, 0, 4) - one == 10_ns);
}

TEST_CASE("each mistake in a tree is one line that says what to do") {
  const auto error = [](const std::string& tree, const std::string& more = "") {
    return server_error("template: pcie\ngpu: L40S\n" + more + "tree: " + tree + "\n");
  };
  REQUIRE(error("[[gpu]]") == "no error");
  REQUIRE(error("[]") ==
          "server.yaml:3:7: tree: expected a list of branches for each of 1 to 64 sockets, found 0 "
          "sockets");
  REQUIRE(error("gpu") == "server.yaml:3:7: tree: expected a sequence, found \"gpu\"");
  REQUIRE(error("[gpu]") == "server.yaml:3:8: tree[0]: expected a sequence, found \"gpu\"");
  REQUIRE(error("[[gpus]]") ==
          "server.yaml:3:9: tree[0][0]: expected one of gpu, nic, found \"gpus\"; did you mean "
          "\"gpu\"?");
  REQUIRE(error("[[gpu, nic]]") == "server.yaml:1:1: missing key \"nic\"");
  REQUIRE(error("[[gpu, {times: 2}]]") ==
          "server.yaml:3:14: tree[0][1]: gpu, nic or a mapping with one of the keys switch, root, "
          "gpu and nic");
  REQUIRE(error("[[{switch: []}]]") ==
          "server.yaml:3:18: tree[0][0].switch: expected at least one branch, found an empty list");
  REQUIRE(error("[[{switch: [gpu], time: 2}]]") ==
          "server.yaml:3:25: tree[0][0]: unknown key \"time\"; did you mean \"times\"?");
  REQUIRE(
      error("[[{switch: [gpu], times: 0}]]") ==
      "server.yaml:3:32: tree[0][0].times: expected a whole number from 1 to 4096, found \"0\"");
  REQUIRE(error("[[{switch: [gpu], uplink: NVLink4}]]") ==
          "server.yaml:3:33: tree[0][0].uplink: expected a PCIe link such as PCIe4, found "
          "\"NVLink4\"");
  REQUIRE(error("[[{switch: [gpu], lanes: 64}]]") ==
          "server.yaml:3:32: tree[0][0].lanes: expected a whole number from 1 to 32, found \"64\"");
  REQUIRE(error("[[{root: [gpu]}]]") == "server.yaml:3:9: tree[0][0]: missing key \"bandwidth\"");
  REQUIRE(error("[[{switch: [{root: [gpu], bandwidth: 73 GB/s}]}]]") ==
          "server.yaml:3:19: tree[0][0].switch[0]: a root complex belongs to a socket: it cannot "
          "stand below a PCIe switch or another one");
  REQUIRE(error("[[{gpu: L41S}]]") ==
          "server.yaml:3:15: tree[0][0].gpu: expected the name of a GPU in the catalogue, found "
          "\"L41S\"; did you mean \"L40S\"?");
  REQUIRE(error("[[{switch: [{gpu: GH200}]}]]") ==
          "server.yaml:3:25: tree[0][0].switch[0].gpu: GH200 reaches its CPU over C2C: it stands "
          "beside the PCIe switches and root complexes of a socket, not below");
  REQUIRE(error("[[gpu, gpu]]", "gpus: 3\n") ==
          "server.yaml:3:7: gpus: expected 2, the number in tree, found \"3\"");
  REQUIRE(error("[[gpu]]", "nics: 1\n") ==
          "server.yaml:3:7: nics: expected 0, the number in tree, found \"1\"");
  REQUIRE(error("[[gpu]]", "sockets: 1\n") ==
          "server.yaml:3:10: sockets: tree says this already; leave it out");
  REQUIRE(error("[[gpu]]", "pcie_switches: 1\n") ==
          "server.yaml:3:16: pcie_switches: tree says this already; leave it out");
  REQUIRE(error("[[{nic: ConnectX-7}]]") ==
          "server.yaml:3:7: tree: expected at least one GPU, found none");
  REQUIRE(error("[[gpu], [gpu]]") == "server.yaml:1:1: missing key \"socket_link\"");
  REQUIRE(error("[[{switch: [{gpu: L40S, times: 4096}], times: 2}]]") ==
          "server.yaml:3:25: tree[0][0].switch[0].gpu: expected at most 4096 GPUs in a server, "
          "found more");
  REQUIRE(error("[[gpu, {nic: ConnectX-7, times: 257}]]") ==
          "server.yaml:3:20: tree[0][1].nic: expected at most 256 NICs in a server, found more");
  REQUIRE(server_error("template: full-mesh\ngpu: GH200\ngpus: 1\npcie_switches: 1\n") ==
          "server.yaml:1:1: missing key \"pcie_uplink\"");
}

}  // namespace
}  // namespace trainyard
