// SPDX-License-Identifier: Apache-2.0
// What a server is made of beside its tree: CPUs and their memory, parts, estimates.
#include "support/catch.h"

#include "topology/server/server.h"

#include <string>
#include <vector>

#include "support/described_servers.h"

namespace trainyard {
namespace {

TEST_CASE("each socket has its memory, as fast as the CPU's part says") {
  for (const int sockets : {1, 2, 4}) {
    const ServerSpec spec = read_server_text(even_server("nvswitch", "H100-SXM", 8, 8, 8, sockets) +
                                             "cpu: Xeon-SapphireRapids\n");
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
      even_server("nvswitch", "H100-SXM", 8, 8, 8, 2) + "cpu: EPYC-Genoa\n", "server.yaml");
  PartLog parts;
  const ServerSpec spec = read_server(document.root(), parts);
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
  REQUIRE(read_server_text(two).socket_link.bandwidth.gigabytes_per_second() == 50.5);
  REQUIRE(read_server_text(two + "socket_link: UPI-Skylake\n").socket_link.bandwidth ==
          gigabytes_per_second(10));
}

TEST_CASE("the memory of a CPU that the file does not name is a listed estimate") {
  ConfigDocument document =
      ConfigDocument::parse(even_server("nvswitch", "H100-SXM", 8, 0, 8, 1), "server.yaml");
  PartLog parts;
  const ServerSpec spec = read_server(document.root(), parts);
  REQUIRE(spec.cpu_part == 0);
  REQUIRE(spec.memory_link.bandwidth.gigabytes_per_second() == Approx(8 * 3.2 * 8));
  int listed = 0;
  for (const std::string& line : parts.lines()) {
    listed += line.starts_with("host memory: bandwidth = ") ? 1 : 0;
  }
  REQUIRE(listed == 1);
}

}  // namespace
}  // namespace trainyard
