// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/system.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

// What is joined to a vertex, in the order of its edges.
std::vector<VertexKind> around(const System& system, int vertex) {
  std::vector<VertexKind> kinds;
  for (const int edge : system.vertices[static_cast<std::size_t>(vertex)].edges) {
    const int to = system.edges[static_cast<std::size_t>(edge)].to;
    kinds.push_back(system.vertices[static_cast<std::size_t>(to)].kind);
  }
  return kinds;
}

float bandwidth_between(const System& system, int from, int to) {
  float sum = 0.0F;
  for (const int edge : system.vertices[static_cast<std::size_t>(from)].edges) {
    const Edge& link = system.edges[static_cast<std::size_t>(edge)];
    sum += link.to == to ? link.bandwidth : 0.0F;
  }
  return sum;
}

// The last edge of a PCIe device leads up.
int above(const System& system, int vertex) {
  const int edge = system.vertices[static_cast<std::size_t>(vertex)].edges.back();
  return system.edges[static_cast<std::size_t>(edge)].to;
}

TEST_CASE("all NVSwitches are one, and links to it add up", "[nccl]") {
  NcclSystem file = plain_server(h100_server());
  // Six switches of three links each.
  for (NcclCpu& cpu : file.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      NcclGpu& gpu = bridge.pcis[0].gpus[0];
      const std::vector<NcclGpuLink> links(
          6, {.target = "ffff:ff:ff.f", .count = 3, .tclass = "0x068000"});
      gpu.nvlinks = links;
    }
  }
  const System system = build_system({file}, {});
  REQUIRE(system.nvswitch);
  for (const SystemGpu& gpu : system.gpus) {
    REQUIRE(bandwidth_between(system, gpu.device, *system.nvswitch) == Approx(370.8));
    REQUIRE(around(system, gpu.device) ==
            std::vector{VertexKind::Gpu, VertexKind::NvSwitch, VertexKind::Pci});
  }
}

TEST_CASE("every edge knows the one back, and sockets are joined pairwise", "[nccl]") {
  const System system = build_system({plain_server(a100_server())}, {});
  for (const Vertex& vertex : system.vertices) {
    for (const int index : vertex.edges) {
      const Edge& edge = system.edges[static_cast<std::size_t>(index)];
      const Edge& back = system.edges[static_cast<std::size_t>(edge.reverse)];
      REQUIRE(back.from == edge.to);
      REQUIRE(back.to == edge.from);
      REQUIRE(back.kind == edge.kind);
    }
  }
  REQUIRE(system.cpus.size() == 2);
  REQUIRE(bandwidth_between(system, system.cpus[0].vertex, system.cpus[1].vertex) == 16.0F);
}

TEST_CASE("ranks follow the attribute where all GPUs have it, else the file", "[nccl]") {
  NcclSystem file = plain_server(pcie_server());
  int rank = 100;
  for (NcclCpu& cpu : file.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      bridge.pcis[0].gpus[0].rank = rank--;
    }
  }
  std::vector<int> ranks;
  for (const SystemGpu& gpu : build_system({file}, {}).gpus) {
    ranks.push_back(gpu.rank);
  }
  REQUIRE(ranks == std::vector{3, 2, 1, 0});
  file.cpus[0].pcis[0].pcis[0].gpus[0].rank = {};
  ranks.clear();
  for (const SystemGpu& gpu : build_system({file}, {}).gpus) {
    ranks.push_back(gpu.rank);
  }
  REQUIRE(ranks == std::vector{0, 1, 2, 3});
}

TEST_CASE("a selection leaves the others out and counts anew", "[nccl]") {
  const System system =
      build_system({plain_server(h100_server())}, {.ranks = std::vector{2, 5}, .nets = false});
  REQUIRE(system.gpus.size() == 2);
  REQUIRE(system.gpus[0].dev == 2);
  REQUIRE(system.gpus[0].rank == 0);
  REQUIRE(system.gpus[1].rank == 1);
  REQUIRE(system.devices.size() == 2);
  REQUIRE(system.nets.empty());
}

TEST_CASE("several hosts keep their CPUs apart and count ranks and NICs on", "[nccl]") {
  const std::vector<NcclSystem> files(2, plain_server(b200_server()));
  const System system = build_system(files, {});
  REQUIRE(system.hosts == 2);
  REQUIRE(system.gpus.size() == 16);
  REQUIRE(system.gpus[9].rank == 9);
  REQUIRE(system.gpus[9].dev == 1);
  REQUIRE(system.gpus[9].host == 1);
  REQUIRE(system.nets[9].dev == 9);
  REQUIRE(system.cpus.size() == 4);
  REQUIRE(bandwidth_between(system, system.cpus[0].vertex, system.cpus[2].vertex) == 0.0F);
}

TEST_CASE("functions of one card are one adapter, and unknown speeds 10 Gb/s", "[nccl]") {
  NcclSystem file = plain_server(h100_server());
  NcclPci& bridge = file.cpus[0].pcis[0];
  NcclPci second = bridge.pcis[1];
  second.busid = "0000:12:00.1";
  second.nics[0].nets[0].dev = 8;
  second.nics[0].nets[0].speed = -1;
  bridge.pcis.push_back(second);
  const System system = build_system({file}, {.merge_ports = false});
  REQUIRE(system.nets.size() == 9);
  REQUIRE(system.nets[1].bandwidth == 1.25F);
  const auto adapters =
      std::count_if(system.vertices.begin(), system.vertices.end(),
                    [](const Vertex& vertex) { return vertex.kind == VertexKind::Nic; });
  REQUIRE(adapters == 8);
  const System merged = build_system({file}, {});
  REQUIRE(merged.nets.size() == 8);
  REQUIRE(merged.nets[0].bandwidth == 51.25F);
  REQUIRE(merged.nets[0].dev == 0);
  REQUIRE(merged.nets[0].ports == 2);
}

TEST_CASE("Broadcom's bridges below bridges of one chip become one switch", "[nccl]") {
  NcclSystem file = plain_server(h100_server());
  NcclCpu& cpu = file.cpus[0];
  NcclPci top = cpu.pcis[0];
  top.busid = "0000:0f:00.0";
  top.pcis = {cpu.pcis[0], cpu.pcis[1]};
  cpu.pcis.erase(cpu.pcis.begin(), cpu.pcis.begin() + 2);
  for (NcclPci* bridge : {&top, &top.pcis[0], &top.pcis[1]}) {
    bridge->device = "0xc010";
    bridge->subsystem_vendor = "0x1000";
    bridge->subsystem_device = bridge == &top ? "0xa096" : "0xb096";
  }
  cpu.pcis.insert(cpu.pcis.begin(), top);
  const System system = build_system({file}, {});
  REQUIRE(above(system, system.gpus[0].device) == above(system, system.gpus[1].device));
  REQUIRE(above(system, above(system, system.gpus[0].device)) == system.cpus[0].vertex);
  REQUIRE(above(system, system.gpus[2].device) != above(system, system.gpus[3].device));
  // One of another maker stays a level of its own.
  file.cpus[0].pcis[0].pcis[0].subsystem_vendor = "0x10de";
  const System apart = build_system({file}, {});
  REQUIRE(above(apart, apart.gpus[0].device) != above(apart, apart.gpus[1].device));
}

TEST_CASE("chip-to-chip links lead to the CPU above the GPU", "[nccl]") {
  NcclSystem file = plain_server(h100_server());
  file.cpus[1].pcis[0].pcis[0].gpus[0].c2cs.push_back({.bw = 44'712, .count = 10});
  const System system = build_system({file}, {});
  REQUIRE(bandwidth_between(system, system.gpus[4].device, system.cpus[1].vertex) ==
          Approx(447.12));
}

TEST_CASE("what NCCL's rules do not hold for is refused", "[nccl]") {
  const auto message = [](const NcclSystem& file) {
    try {
      (void)build_system({file}, {});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  NcclSystem amd = plain_server(h100_server());
  amd.cpus[0].pcis[0].pcis[0].gpus[0].gcn = "gfx1100";
  REQUIRE(message(amd) ==
          "the server: expected a GPU whose rules in RCCL are known: gfx90a, gfx942 or gfx950; "
          "found gfx1100; --runtime plain takes any");
  NcclSystem unknown = plain_server(h100_server());
  unknown.cpus[0].pcis[0].pcis[0].gpus[0].sm = {};
  unknown.cpus[0].pcis[0].pcis[0].gpus[0].place = {.line = 7, .column = 3};
  REQUIRE(message(unknown) ==
          "the server: line 7: expected NVIDIA GPUs with the attribute sm, or AMD's with gcn, at "
          "0000:11:00.0, found none; --runtime plain takes any");
  REQUIRE(message(NcclSystem{}) == "the server: expected a GPU, found none");
  NcclSystem one_sided = plain_server(h100_server());
  one_sided.cpus[0].pcis[0].pcis[0].gpus[0].nvlinks = {
      {.target = "0000:21:00.0", .count = 4, .tclass = "0x030200"}};
  REQUIRE(message(one_sided) ==
          "the server: expected the NVLinks between GPUs at both ends, found them at GPU "
          "0000:11:00.0 and not at GPU 0000:21:00.0");
}

}  // namespace
}  // namespace trainyard::nccl
