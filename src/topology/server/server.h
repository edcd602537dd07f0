// SPDX-License-Identifier: Apache-2.0
// The inside of a server: GPUs, what joins them, PCIe, CPUs and their memory, NICs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "topology/graph/topology.h"
#include "topology/server/parts.h"

namespace trainyard {

enum class ServerTemplate : std::uint8_t {
  NvSwitch,  // Every GPU with all its links on one switch that represents all planes.
  FullMesh,  // Every pair of GPUs joined by links of its own, equally many.
  CubeMesh,  // The hybrid cube mesh of DGX-1: 8 GPUs, one or two links to some of the others.
  Pcie,      // Nothing but PCIe between the GPUs.
  Links,     // Pairs of GPUs joined as the file says: bridges, partial meshes.
};

// The upstream neighbour of a device on its way to the CPU, and the link to it.
struct Attachment {
  NodeKind above = NodeKind::Cpu;  // PcieSwitch, RootComplex or Cpu.
  int index = 0;                   // Among the nodes of that kind in the server.
  LinkSpec link = {};
};

// Parts are indices into PartLog::names().
struct GpuSpec {
  std::uint16_t part = 0;
  Attachment host = {};
};

struct NicSpec {
  std::uint16_t part = 0;
  int ports = 1;
  Bandwidth port_speed;     // Line rate of one port.
  double efficiency = 1.0;  // Payload over line rate.
  SimTime latency;
  bool grouped = false;  // Grouped by its NCCL plugin.
  Attachment host = {};

  [[nodiscard]] Bandwidth speed() const;  // Line rate of all ports.
};

struct PcieSwitchSpec {
  SimTime latency;
  Attachment host = {};
};

// Links between two GPUs.
struct GpuPair {
  int first = 0;
  int second = 0;
  int links = 0;
};

// Each node represents all chips of a board, or of a domain of several servers: GPUs spread their
// links over them evenly, so that they fill together.
struct NvSwitchSpec {
  SimTime latency;
  std::uint16_t part = 0;
  int ports = 0;    // Ports of all chips of one node; 0 where the chips are not known.
  int boards = 1;   // Nodes in a server, each with an equal share of its GPUs.
  LinkSpec trunk;   // Between two boards.
  int servers = 1;  // Servers that share one node, which then belongs to none of them.
  bool in_network_reduction = false;
};

struct ServerKeys;  // topology/server/server_keys.h

struct ServerSpec {
  ServerTemplate layout = ServerTemplate::NvSwitch;
  int gpus = 0;
  int nics = 0;
  int sockets = 1;
  ServerTraits traits;
  PhysicalLink scale_up;
  int scale_up_links = 0;          // Links of one GPU.
  std::vector<GpuPair> gpu_links;  // Where GPUs are joined without a switch.
  NvSwitchSpec nvswitch;
  LinkSpec socket_link;  // Between two CPUs.
  LinkSpec memory_link;  // From a CPU to its memory.
  // Line rate of all ports, number of ports, and payload over line rate, for NICs of one part. For
  // several parts it is the least of each.
  Bandwidth nic_speed;
  int nic_ports = 1;
  double network_efficiency = 1.0;
  std::uint16_t cpu_part = 0;  // 0 where the file names none.
  // GPUs and NICs in the order of their numbers. A switch comes after the one that it hangs off.
  std::vector<GpuSpec> gpu_specs;
  std::vector<NicSpec> nic_specs;
  std::vector<PcieSwitchSpec> switch_specs;
  std::vector<Attachment> root_specs;      // Root complexes with a limit, each on a CPU.
  std::vector<std::string> warnings = {};  // One line each.

  // All nodes of one server.
  [[nodiscard]] std::int64_t devices() const;
  // Returns whether all NICs are of one part.
  [[nodiscard]] bool has_equal_nics() const;
};

struct ServerNodes {
  std::vector<NodeId> gpus;
  std::vector<NodeId> nics;
  std::vector<NodeId> cpus;
  std::vector<NodeId> memories;  // Memory of each CPU, once add_memory was called.
};

// Throws ConfigError where the parts do not fit each other.
[[nodiscard]] ServerSpec read_server(const ServerKeys& keys, PartLog& parts);

// Adds one more server.
ServerNodes add_server(TopologyBuilder& builder, const ServerSpec& spec);

// Joins GPUs without the NVSwitch of a domain of several servers.
void join_gpus(TopologyBuilder& builder, const ServerSpec& spec, const std::vector<NodeId>& gpus);

// Adds the NVSwitch that `servers`, of which `spec` describes each, have in common. `domain`
// numbers such groups.
void add_nvlink_domain(TopologyBuilder& builder, const ServerSpec& spec, int domain,
                       std::span<const ServerNodes> servers);

// Adds the memory of each socket to a server that add_server made. Apart from it, so that these
// nodes can be the last of a topology: the hash of ECMP takes the numbers of the others.
void add_memory(TopologyBuilder& builder, const ServerSpec& spec, ServerNodes& server);

}  // namespace trainyard
