// SPDX-License-Identifier: Apache-2.0
// The graph of devices that NCCL makes of topology files: what is joined to what, how fast.
//
// A GPU of a file is a Device, and each rank on it a Gpu beside it, as since NCCL 2.30; before,
// with one rank for each GPU, the two were one node and all else is the same. Bandwidths are NCCL's
// own figures in GB/s (1e9 B/s), constants of its source and not those of the catalogue: they
// decide what it chooses, not how fast it is. They are `float`, because NCCL's are, and comparisons
// of sums are what the search is about (NVIDIA/nccl, src/graph/topo.h, topo.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nccl/machine/link_rates.h"
#include "nccl/types/gpu_generation.h"
#include "nccl/types/types.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

enum class VertexKind : std::uint8_t { Device, Gpu, Pci, NvSwitch, Cpu, Nic, Net };
enum class EdgeKind : std::uint8_t { Loc, Nvl, C2c, Pci, Sys, Net };

// One direction.
struct Edge {
  int from = 0;
  int to = 0;
  EdgeKind kind = EdgeKind::Loc;
  float bandwidth = 0.0F;
  int reverse = -1;  // The edge back.
};

struct Vertex {
  VertexKind kind = VertexKind::Pci;
  int host = 0;
  int index = -1;  // Into the list of its kind below, if it has one.
  // Identity of a PCIe switch: vendor, device, and both of the subsystem.
  std::uint64_t pci_id = 0;
  std::vector<int> edges = {};  // From here; by falling bandwidth, PCIe upwards last.
};

struct SystemGpu {
  int vertex = 0;
  int device = 0;  // Vertex.
  int host = 0;
  int dev = 0;   // NVML index on its host.
  int rank = 0;  // Among the ranks of this system, from zero.
  const GpuGeneration* generation = nullptr;
  bool gdr = false;
};

struct SystemNet {
  int vertex = 0;
  int host = 0;
  // The number in the file; those of a further host are counted on. For merged ports it is the
  // first.
  int dev = 0;
  int ports = 1;  // Ports that are used as one.
  std::uint64_t asic = 0;
  int port = 0;
  float bandwidth = 0.0F;
  float latency = 0.0F;  // Microseconds.
  bool gdr = false;
  bool collnet = false;
  std::optional<int> rail = {};
  std::optional<int> plane = {};
};

struct SystemCpu {
  int vertex = 0;
  CpuArch arch = CpuArch::Unknown;
  CpuVendor vendor = CpuVendor::Unknown;
  float socket_bandwidth = kLocalBandwidth;  // To each other CPU of its host.
};

struct System {
  std::vector<Vertex> vertices;
  std::vector<Edge> edges;
  // The devices in the order of the files, which is what NCCL calls the PCI order.
  std::vector<SystemGpu> gpus;
  std::vector<SystemNet> nets;
  std::vector<SystemCpu> cpus;
  std::vector<int> devices;  // Vertices.
  std::optional<int> nvswitch = {};
  int hosts = 0;

  [[nodiscard]] const GpuGeneration& oldest() const;  // The least compute capability of all.
};

// The part of the servers that takes part.
struct SystemSelection {
  std::optional<std::vector<int>> ranks = {};  // All if absent; they are numbered anew, in order.
  bool nets = true;
  // Ports of one adapter are one NIC with the sum of their rates: NCCL_NET_MERGE_LEVEL=PORT, which
  // is NCCL's way where the network plugin can do it (InfiniBand, RoCE).
  bool merge_ports = true;
  Version version = kNewestVersion;  // Whose rates links have.
};

// `servers` are the hosts of one NVLink domain, mostly one. Ranks are counted host by host, on a
// host in the order of the attribute `rank` where every GPU has one of its own, else in the order
// of the file. (NCCL takes GPUs without rank for those of no use; here the file says what there is
// and not who takes part.) Throws ConfigError for GPUs that are not NVIDIA's, without `sm`, or with
// NVLinks that the other end does not have, and where there is no GPU.
[[nodiscard]] System build_system(const std::vector<NcclSystem>& servers,
                                  const SystemSelection& selection);

}  // namespace trainyard::nccl
