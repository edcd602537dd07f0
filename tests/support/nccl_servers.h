// SPDX-License-Identifier: Apache-2.0
// Topology files of plain servers: every GPU below a PCIe switch of its own, with its NICs, two
// sockets.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

#include "nccl/search/search.h"
#include "sim/check.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard {

struct PlainServer {
  int gpus = 8;
  int sm = 90;
  int nvlinks = 18;  // Into NVSwitches; none if zero.
  std::string link_speed = "32.0 GT/s PCIe";
  // NICs: each `nic_every`-th GPU has `nics_per_gpu` of them.
  int nic_every = 1;
  int nics_per_gpu = 1;
  int nic_speed = 400'000;
  bool gpudirect = true;
  std::string vendor = "GenuineIntel";
  int family = 6;
  int model = 143;
  int sockets = 2;
  int ranks_per_gpu = 1;
};

inline NcclPci plain_branch(const PlainServer& server, int gpu, int& next_nic) {
  const auto bus_id = [&](int device) {
    return fmt::format("0000:{:02x}:00.0", 0x10 + 0x10 * gpu + device);
  };
  const auto device = [&](int number, const std::string& device_class) {
    NcclPci pci;
    pci.busid = bus_id(number);
    pci.device_class = device_class;
    pci.link_speed = server.link_speed;
    pci.link_width = 16;
    return pci;
  };
  NcclPci bridge = device(0, "0x060400");
  bridge.vendor = "0x1000";
  bridge.device = "0xc030";
  bridge.subsystem_vendor = "0x10de";
  bridge.subsystem_device = "0x0001";
  NcclPci card = device(1, "0x030200");
  for (int rank = 0; rank < server.ranks_per_gpu; ++rank) {
    NcclGpu xml;
    xml.dev = gpu;
    xml.sm = server.sm;
    xml.rank = gpu * server.ranks_per_gpu + rank;
    xml.gdr = 1;
    if (server.nvlinks > 0) {
      xml.nvlinks.push_back(
          {.target = "0000:05:00.0", .count = server.nvlinks, .tclass = "0x068000"});
    }
    card.gpus.push_back(xml);
  }
  bridge.pcis.push_back(card);
  for (int nic = 0; gpu % server.nic_every == 0 && nic < server.nics_per_gpu; ++nic) {
    NcclPci adapter = device(2 + nic, "0x020000");
    NcclNet net;
    net.name = fmt::format("mlx5_{}", next_nic);
    net.dev = next_nic;
    net.speed = server.nic_speed;
    net.port = 1;
    net.latency = 0.0;
    net.guid = fmt::format("0x{:x}", next_nic + 1);
    net.maxconn = 131'072;
    net.gdr = server.gpudirect ? 1 : 0;
    net.net = 1;
    adapter.nics.push_back({.nets = {net}});
    bridge.pcis.push_back(adapter);
    ++next_nic;
  }
  return bridge;
}

inline NcclSystem plain_server(const PlainServer& server) {
  NcclSystem system;
  int next_nic = 0;
  for (int socket = 0; socket < server.sockets; ++socket) {
    NcclCpu cpu;
    cpu.numaid = socket;
    cpu.arch = "x86_64";
    cpu.vendor = server.vendor;
    cpu.familyid = server.family;
    cpu.modelid = server.model;
    for (int gpu = 0; gpu < server.gpus; ++gpu) {
      if (gpu * server.sockets / server.gpus == socket) {
        cpu.pcis.push_back(plain_branch(server, gpu, next_nic));
      }
    }
    system.cpus.push_back(cpu);
  }
  return system;
}

inline PlainServer h100_server() {
  return {};
}
inline PlainServer a100_server() {
  return {.sm = 80,
          .nvlinks = 12,
          .link_speed = "16.0 GT/s PCIe",
          .nic_speed = 200'000,
          .vendor = "AuthenticAMD",
          .family = 175,
          .model = 49};
}
inline PlainServer b200_server() {
  return {.sm = 100, .model = 207};
}
// Two sockets of two GPUs, one NIC on each socket.
inline PlainServer pcie_server() {
  return {.gpus = 4,
          .sm = 89,
          .nvlinks = 0,
          .link_speed = "16.0 GT/s PCIe",
          .nic_every = 2,
          .nic_speed = 100'000};
}

namespace nccl {

// The graphs of the hosts of one NVLink domain that NCCL takes for one node.
inline GraphSet search_graphs(const std::vector<NcclSystem>& servers,
                              const SearchOptions& options) {
  const std::vector<MachinePart> parts = make_machines(servers, options);
  CHECK(parts.size() == 1, "servers that are one node");
  return search_graphs(parts.front().machine);
}

}  // namespace nccl
}  // namespace trainyard
