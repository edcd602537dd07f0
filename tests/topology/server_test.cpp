// SPDX-License-Identifier: Apache-2.0
// The inside of servers by formula: numbers of devices and links, rates, who hangs off what.
#include "support/catch.h"

#include "topology/server.h"

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace trainyard {
namespace {

const Catalogue& catalogue() {
  static const Catalogue instance =
      Catalogue::load(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs/hardware");
  return instance;
}

ServerSpec read(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "server.yaml");
  PartLog parts;
  const ServerSpec spec = read_server(document.root(), catalogue(), parts);
  document.finish();
  return spec;
}

struct Built {
  Topology topology;
  ServerNodes nodes;
};

Built build(const std::string& text) {
  TopologyBuilder builder;
  ServerNodes nodes = add_server(builder, read(text));
  return {std::move(builder).build(), std::move(nodes)};
}

const Link* find_link(const Topology& topology, NodeId source, NodeId target) {
  for (const LinkId link : topology.links_from(source)) {
    if (topology.link(link).target == target) {
      return &topology.link(link);
    }
  }
  return nullptr;
}

// The name of what `node` hangs off by PCIe or C2C.
std::string host_of(const Topology& topology, NodeId node) {
  for (const LinkId link : topology.links_from(node)) {
    const LinkKind kind = topology.link(link).spec.kind;
    if (kind == LinkKind::Pcie || kind == LinkKind::C2c) {
      return topology.node(topology.link(link).target).name;
    }
  }
  return "";
}

std::string server(const std::string& layout, const std::string& gpu, int gpus, int nics,
                   int switches, int sockets) {
  std::string text = "template: " + layout + "\ngpu: " + gpu + "\ngpus: " + std::to_string(gpus) +
                     "\nnics: " + std::to_string(nics) +
                     "\npcie_switches: " + std::to_string(switches) +
                     "\nsockets: " + std::to_string(sockets) + "\n";
  text += nics > 0 ? "nic: ConnectX-7\n" : "";
  text += sockets > 1 ? "socket_link: UPI-Sapphire-Rapids\n" : "";
  return text;
}

TEST_CASE("a server has the devices and links that its numbers say") {
  for (const int gpus : {1, 2, 3, 8, 16}) {
    for (const int nics : {0, 1, 4, 8}) {
      for (const int switches : {0, 1, 4, 8}) {
        for (const int sockets : {1, 2, 4}) {
          INFO(gpus << " GPUs, " << nics << " NICs, " << switches << " switches, " << sockets);
          const auto count = [](int number) { return static_cast<std::uint32_t>(number); };
          const int devices = gpus + nics + switches + sockets;
          const int pcie = gpus + nics + switches;
          const int socket_pairs = sockets * (sockets - 1) / 2;
          const Built plain = build(server("pcie", "H100-SXM", gpus, nics, switches, sockets));
          REQUIRE(plain.topology.node_count() == count(devices));
          REQUIRE(plain.topology.link_count() == count(2 * (pcie + socket_pairs)));
          const Built star = build(server("nvswitch", "H100-SXM", gpus, nics, switches, sockets));
          REQUIRE(star.topology.node_count() == count(devices + 1));
          REQUIRE(star.topology.link_count() == count(2 * (pcie + socket_pairs + gpus)));
          const Built mesh = build(server("full-mesh", "H100-SXM", gpus, nics, switches, sockets));
          REQUIRE(mesh.topology.node_count() == count(devices));
          REQUIRE(mesh.topology.link_count() ==
                  count(2 * (pcie + socket_pairs + gpus * (gpus - 1) / 2)));
        }
      }
    }
  }
}

TEST_CASE("the cube mesh of DGX-1 has the published matrix, and each GPU uses six links") {
  constexpr std::array<std::array<int, 8>, 8> published = {{{0, 1, 1, 2, 2, 0, 0, 0},
                                                            {1, 0, 2, 1, 0, 2, 0, 0},
                                                            {1, 2, 0, 2, 0, 0, 1, 0},
                                                            {2, 1, 2, 0, 0, 0, 0, 1},
                                                            {2, 0, 0, 0, 0, 1, 1, 2},
                                                            {0, 2, 0, 0, 1, 0, 2, 1},
                                                            {0, 0, 1, 0, 1, 2, 0, 2},
                                                            {0, 0, 0, 1, 2, 1, 2, 0}}};
  const Built dgx = build(server("cube-mesh", "V100-SXM2-16GB", 8, 4, 4, 2));
  for (std::size_t a = 0; a < 8; ++a) {
    int used = 0;
    for (std::size_t b = 0; b < 8; ++b) {
      const Link* link = find_link(dgx.topology, dgx.nodes.gpus[a], dgx.nodes.gpus[b]);
      const int lanes = link == nullptr ? 0 : link->spec.lanes;
      REQUIRE(lanes == published[a][b]);
      if (lanes > 0) {
        REQUIRE(link->spec.bandwidth == gigabytes_per_second(21 * lanes));  // 25 x 0.84.
      }
      used += lanes;
    }
    REQUIRE(used == 6);
  }
}

TEST_CASE("devices are dealt over PCIe switches and sockets evenly and in order") {
  const Built box = build(server("nvswitch", "H100-SXM", 8, 4, 4, 2));
  std::vector<std::string> hosts;
  for (const NodeId gpu : box.nodes.gpus) {
    hosts.push_back(host_of(box.topology, gpu));
  }
  REQUIRE(hosts == std::vector<std::string>{"server0/pcie0", "server0/pcie0", "server0/pcie1",
                                            "server0/pcie1", "server0/pcie2", "server0/pcie2",
                                            "server0/pcie3", "server0/pcie3"});
  REQUIRE(host_of(box.topology, box.nodes.nics[0]) == "server0/pcie0");
  REQUIRE(host_of(box.topology, box.nodes.nics[3]) == "server0/pcie3");
  const Built bare = build(server("pcie", "RTX-4090", 8, 0, 0, 2));
  REQUIRE(host_of(bare.topology, bare.nodes.gpus[3]) == "server0/cpu0");
  REQUIRE(host_of(bare.topology, bare.nodes.gpus[4]) == "server0/cpu1");
}

TEST_CASE("rates are lanes times rate times efficiency") {
  const ServerSpec spec = read(server("nvswitch", "H100-SXM", 8, 8, 8, 2));
  REQUIRE(spec.scale_up.bundle(spec.scale_up_links).bandwidth == gigabytes_per_second(369));
  REQUIRE(spec.scale_up.bundle(spec.scale_up_links).lanes == 18);
  // 63.0 GB/s after encoding, 256-byte payloads: 1024 / 1144.
  REQUIRE(spec.gpu_host.bandwidth.gigabytes_per_second() == Approx(56.4).epsilon(0.001));
  REQUIRE(spec.nic_speed == gigabits_per_second(400));
  REQUIRE(spec.network_efficiency == 0.96);
  REQUIRE(spec.socket_link.bandwidth == gigabytes_per_second(22));
}

TEST_CASE("a full mesh shares the links of a GPU among its peers") {
  const Built four = build(server("full-mesh", "A100-SXM-40GB", 4, 0, 0, 1));
  const Link* pair = find_link(four.topology, four.nodes.gpus[0], four.nodes.gpus[3]);
  REQUIRE(pair->spec.lanes == 4);
  const Built amd = build(server("full-mesh", "MI300X", 8, 0, 0, 1));
  pair = find_link(amd.topology, amd.nodes.gpus[0], amd.nodes.gpus[7]);
  REQUIRE(pair->spec.kind == LinkKind::Xgmi);
  REQUIRE(pair->spec.lanes == 1);
}

TEST_CASE("the uplink of a PCIe switch and the payload can be given") {
  const std::string base = server("nvswitch", "H100-SXM", 8, 8, 8, 1);
  const ServerSpec spec = read(base + "pcie_uplink: PCIe4\npcie_uplink_lanes: 8\n");
  REQUIRE(spec.pcie_uplink.bandwidth.gigabytes_per_second() == Approx(14.1).epsilon(0.001));
  const ServerSpec small = read(base + "pcie_payload: 128 B\n");
  REQUIRE(small.gpu_host.bandwidth.gigabytes_per_second() == Approx(51.0).epsilon(0.001));
  REQUIRE(small.nic_host.bandwidth == small.gpu_host.bandwidth);
}

TEST_CASE("each socket has its memory, as fast as the CPU's part says") {
  for (const int sockets : {1, 2, 4}) {
    const ServerSpec spec =
        read(server("nvswitch", "H100-SXM", 8, 8, 8, sockets) + "cpu: Xeon-SapphireRapids\n");
    TopologyBuilder builder;
    ServerNodes nodes = add_server(builder, spec);
    REQUIRE(nodes.cpus.size() == static_cast<std::size_t>(sockets));
    REQUIRE(nodes.memories.empty());
    add_memory(builder, spec, nodes);
    REQUIRE(nodes.memories.size() == nodes.cpus.size());
    const Topology topology = std::move(builder).build();
    for (std::size_t socket = 0; socket < nodes.cpus.size(); ++socket) {
      const Node& memory = topology.node(nodes.memories[socket]);
      REQUIRE(memory.kind == NodeKind::Memory);
      REQUIRE(memory.name == "server0/memory" + std::to_string(socket));
      const Link* link = find_link(topology, nodes.cpus[socket], nodes.memories[socket]);
      REQUIRE(link->spec.kind == LinkKind::Memory);
      REQUIRE(link->spec.bandwidth.gigabytes_per_second() == Approx(307.2));
      REQUIRE(topology.links_from(nodes.memories[socket]).size() == 1);
    }
  }
}

TEST_CASE("a server knows the parts it is made of") {
  ConfigDocument document = ConfigDocument::parse(
      server("nvswitch", "H100-SXM", 8, 8, 8, 2) + "cpu: EPYC-Genoa\n", "server.yaml");
  PartLog parts;
  const ServerSpec spec = read_server(document.root(), catalogue(), parts);
  document.finish();
  TopologyBuilder builder;
  const ServerNodes nodes = add_server(builder, spec);
  builder.set_parts(parts.names());
  const Topology topology = std::move(builder).build();
  const auto part = [&](NodeId node) { return topology.parts()[topology.node(node).part]; };
  REQUIRE(part(nodes.gpus[7]) == "H100-SXM");
  REQUIRE(part(nodes.nics[7]) == "ConnectX-7");
  REQUIRE(part(nodes.cpus[1]) == "EPYC-Genoa");
}

TEST_CASE("the link between sockets is the CPU's, unless the file gives another") {
  const std::string two = "template: pcie\ngpu: RTX-4090\ngpus: 8\nsockets: 2\ncpu: EPYC-Turin\n";
  REQUIRE(read(two).socket_link.bandwidth.gigabytes_per_second() == 50.5);
  REQUIRE(read(two + "socket_link: UPI-Skylake\n").socket_link.bandwidth ==
          gigabytes_per_second(10));
}

TEST_CASE("the memory of a CPU that the file does not name is a listed estimate") {
  ConfigDocument document =
      ConfigDocument::parse(server("nvswitch", "H100-SXM", 8, 0, 8, 1), "server.yaml");
  PartLog parts;
  const ServerSpec spec = read_server(document.root(), catalogue(), parts);
  REQUIRE(spec.cpu_part == 0);
  REQUIRE(spec.memory_link.bandwidth.gigabytes_per_second() == Approx(8 * 3.2 * 8));
  int listed = 0;
  for (const std::string& line : parts.lines()) {
    listed += line.starts_with("host memory: bandwidth = ") ? 1 : 0;
  }
  REQUIRE(listed == 1);
}

TEST_CASE("a GPU behind C2C hangs off its CPU, whatever PCIe switches there are") {
  const Built grace = build(server("full-mesh", "GH200", 4, 4, 4, 4));
  REQUIRE(host_of(grace.topology, grace.nodes.gpus[2]) == "server0/cpu2");
  REQUIRE(host_of(grace.topology, grace.nodes.nics[2]) == "server0/pcie2");
}

}  // namespace
}  // namespace trainyard
