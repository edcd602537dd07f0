// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/paths.h"

#include <string>
#include <vector>

#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

std::string bus_id_of(int gpu) {
  return fmt::format("0000:{:02x}:00.0", 0x11 + 0x10 * gpu);
}

// A server whose GPUs are joined by the given numbers of NVLinks.
NcclSystem meshed(PlainServer plain, const std::vector<std::vector<int>>& lanes) {
  plain.nvlinks = 0;
  NcclSystem file = plain_server(plain);
  for (NcclCpu& cpu : file.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      NcclGpu& gpu = bridge.pcis[0].gpus[0];
      const auto& own = lanes[static_cast<std::size_t>(*gpu.dev)];
      for (std::size_t peer = 0; peer < own.size(); ++peer) {
        if (own[peer] > 0) {
          gpu.nvlinks.push_back({.target = bus_id_of(static_cast<int>(peer)),
                                 .count = own[peer],
                                 .tclass = "0x030200"});
        }
      }
    }
  }
  return file;
}

TEST_CASE("below one switch is PIX, through the CPU PHB, to the other socket SYS", "[nccl]") {
  const System system = build_system({plain_server(pcie_server())}, {});
  const Paths paths = find_paths(system, true);
  REQUIRE(paths.gpu_net.at(0, 0).type == PathType::Pix);
  REQUIRE(paths.gpu_net.at(0, 0).bandwidth == 12.5F);
  REQUIRE(paths.gpu_net.at(1, 0).type == PathType::Phb);
  REQUIRE(paths.gpu_net.at(2, 0).type == PathType::Sys);
  REQUIRE(paths.gpu_gpu.at(0, 0).type == PathType::Loc);
  REQUIRE(paths.gpu_gpu.at(0, 1).type == PathType::Phb);
  REQUIRE(paths.gpu_gpu.at(0, 1).bandwidth == 24.0F);
  REQUIRE(paths.gpu_gpu.at(0, 2).type == PathType::Sys);
  REQUIRE(paths.gpu_gpu.at(0, 2).bandwidth == 22.0F);
}

TEST_CASE("through NVSwitch all GPUs are at NVLink distance", "[nccl]") {
  const System system = build_system({plain_server(h100_server())}, {});
  const Paths paths = find_paths(system, true);
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      REQUIRE(paths.gpu_gpu.at(from, to).type == (from == to ? PathType::Loc : PathType::Nvl));
    }
    REQUIRE(paths.nvs_gpu.at(0, from).type == PathType::Nvl);
  }
}

TEST_CASE("one GPU in between is NVB, two are not a way, nor is one if forbidden", "[nccl]") {
  // A chain of four.
  const NcclSystem file = meshed({.gpus = 4, .sm = 70, .link_speed = "8.0 GT/s PCIe"},
                                 {{0, 1, 0, 0}, {1, 0, 2, 0}, {0, 2, 0, 1}, {0, 0, 1, 0}});
  const System system = build_system({file}, {});
  const Paths paths = find_paths(system, true);
  REQUIRE(paths.gpu_gpu.at(0, 1).type == PathType::Nvl);
  REQUIRE(paths.gpu_gpu.at(1, 2).bandwidth == 40.0F);
  REQUIRE(paths.gpu_gpu.at(0, 2).type == PathType::Nvb);
  REQUIRE(paths.gpu_gpu.at(0, 2).bandwidth == 20.0F);
  REQUIRE(paths.gpu_gpu.at(0, 3).type == PathType::Sys);
  const Paths without = find_paths(system, false);
  REQUIRE(without.gpu_gpu.at(0, 2).type == PathType::Sys);
  REQUIRE(without.gpu_gpu.at(0, 1).type == PathType::Nvl);
}

TEST_CASE("NICs and CPUs are not reached through the PCIe of another GPU", "[nccl]") {
  const NcclSystem file = meshed({.gpus = 2, .sm = 90, .nic_every = 2}, {{0, 18}, {18, 0}});
  const Paths paths = find_paths(build_system({file}, {}), true);
  REQUIRE(paths.gpu_net.at(0, 0).type == PathType::Pix);
  REQUIRE(paths.gpu_net.at(1, 0).type == PathType::Sys);
  REQUIRE(paths.gpu_cpu.at(1, 0).type == PathType::Sys);
}

TEST_CASE("a path is a walk of its edges, no faster than the slowest", "[nccl]") {
  for (const PlainServer& plain : {h100_server(), a100_server(), pcie_server()}) {
    const System system = build_system({plain_server(plain)}, {});
    const Paths paths = find_paths(system, true);
    for (int gpu = 0; gpu < plain.gpus; ++gpu) {
      for (int net = 0; net < paths.gpu_net.targets(); ++net) {
        const Path& path = paths.gpu_net.at(gpu, net);
        int at = system.gpus[static_cast<std::size_t>(gpu)].vertex;
        float min = kLocalBandwidth;
        for (const int index : path.edges) {
          const Edge& edge = system.edges[static_cast<std::size_t>(index)];
          REQUIRE(edge.from == at);
          at = edge.to;
          min = std::min(min, edge.bandwidth);
        }
        REQUIRE(at == system.nets[static_cast<std::size_t>(net)].vertex);
        REQUIRE(path.bandwidth == min);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::nccl
