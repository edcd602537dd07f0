// SPDX-License-Identifier: Apache-2.0
// The inside of a server: GPUs, what joins them, PCIe, CPUs, NICs.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/catalogue.h"
#include "sim/config.h"
#include "topology/parts.h"
#include "topology/topology.h"

namespace trainyard {

enum class ServerTemplate : std::uint8_t {
  NvSwitch,  // Every GPU with all its links on one switch that stands for all planes.
  FullMesh,  // Every pair of GPUs joined by links of its own, equally many.
  CubeMesh,  // The hybrid cube mesh of DGX-1: 8 GPUs, one or two links to some of the others.
  Pcie,      // Nothing but PCIe between the GPUs.
};

struct ServerSpec {
  ServerTemplate layout = ServerTemplate::NvSwitch;
  int gpus = 0;
  int nics = 0;
  int sockets = 1;
  int pcie_switches = 0;
  PhysicalLink scale_up;
  int scale_up_links = 0;  // Of one GPU.
  SimTime scale_up_switch_latency;
  LinkSpec gpu_host;     // From a GPU to its PCIe switch or CPU.
  LinkSpec nic_host;     // From a NIC to its PCIe switch or CPU.
  LinkSpec pcie_uplink;  // From a PCIe switch to its CPU.
  LinkSpec socket_link;  // Between two CPUs.
  LinkSpec memory_link;  // From a CPU to its memory.
  SimTime pcie_switch_latency;
  SimTime root_latency;
  SimTime nic_latency;
  Bandwidth nic_speed;              // Line rate of all ports.
  double network_efficiency = 1.0;  // Payload over line rate.
  // Parts of the catalogue: indices into PartLog::names().
  std::uint16_t gpu_part = 0;
  std::uint16_t nic_part = 0;
  std::uint16_t cpu_part = 0;  // 0 where the file names none.
};

struct ServerNodes {
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  std::vector<NodeId> cpus;
  std::vector<NodeId> memories;  // Of each CPU, once add_memory was called.
};

[[nodiscard]] ServerSpec read_server(const ConfigNode& node, const Catalogue& catalogue,
                                     PartLog& parts);

// Adds one more server. Devices are dealt evenly and in order: GPU g of G hangs off PCIe switch
// g * S / G of S, switch s off socket s * K / S of K.
ServerNodes add_server(TopologyBuilder& builder, const ServerSpec& spec);

// Adds the memory of each socket to a server that add_server made. Apart from it, so that these
// nodes can be the last of a topology: the hash of ECMP takes the numbers of the others.
void add_memory(TopologyBuilder& builder, const ServerSpec& spec, ServerNodes& server);

}  // namespace trainyard
