// SPDX-License-Identifier: Apache-2.0
// States how fast NCCL's kernels and its threads on the host are: the constants of the event model,
// read from configs/nccl/profile.yaml, each with its source (docs/models/nccl-timing.md).
#pragma once

#include <compare>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/operation.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard {
class ConfigDocument;
class Fields;
}  // namespace trainyard

namespace trainyard::nccl {

// One value for each protocol.
struct ProtocolTimes {
  SimTime ll;
  SimTime ll128;
  SimTime simple;
  [[nodiscard]] SimTime operator[](Protocol protocol) const {
    return protocol == Protocol::LL ? ll : protocol == Protocol::LL128 ? ll128 : simple;
  }
};

// Collectives in the NVSwitch.
struct NvlsProfile {
  double link = 1.0;       // Share of the rate that Simple gets on the links.
  SimTime head_cost;       // Cost of each head in a loop, for the warps that copy.
  SimTime symmetric_base;  // Time of AllReduce in symmetric memory beside its bytes.
};

// GPUs that run RCCL: constants that are of all GPUs where NCCL runs, and those of calls in which
// all ranks exchange with all others.
struct RcclProfile {
  ProtocolTimes base;  // Start and end of a kernel.
  ProtocolTimes pairs_base;
  // Shares of the rate of a link that one phase gets.
  double pairs_ll_link = 0.5;
  double pairs_link = 1.0;
};

// The thread blocks of one generation of GPUs. Rates are of one block (channel).
struct GpuProfile {
  ProtocolTimes link_latency;  // Over NVLink or xGMI, beside the costs of the receiver's block.
  Bandwidth simple_rate;       // Copy or reduce, 512 threads.
  SimTime simple_cost;         // Cost of each slice: waiting, barriers, fence, post.
  Bandwidth ll128_rate;        // 640 threads.
  SimTime ll128_cost;          // Cost of each chunk.
  SimTime ll_cost;             // Cost of each pass, however few bytes.
  SimTime ll_busy;  // Cost of each chunk over NVLink or xGMI more: barrier, post, next wait.
  SimTime ll_pass;  // A pass in which each of the threads has its 8 bytes takes this much more.
  // Shares of the rate that Simple gets on the links of this generation.
  double ll128_link = 1.0;
  double point_to_point_link = 1.0;
  std::optional<NvlsProfile> nvls = {};  // From Hopper on.
  std::optional<RcclProfile> rccl = {};  // AMD's.
};

// A network plugin with its NICs.
struct NetworkProfile {
  ProtocolTimes latency;  // From the sender's block to the receiver's, without the wire.
  SimTime host_cost;      // Cost of each message for the thread that posts or completes it.
  double rate = 1.0;      // Share of the NIC's payload rate.
  Bandwidth connection_rate = kMaxBandwidth;  // Rate of one channel: of its thread that copies.
  // A message of more bytes on the wire costs its threads this much more: it is agreed on first.
  Bytes long_above;
  SimTime long_cost;
  // Without GPUDirect: latency of Simple, and rate of the receiver's thread, which copies.
  std::optional<SimTime> staged_latency = {};
  Bandwidth staged_rate = kMaxBandwidth;
};

struct LaunchProfile {
  SimTime process_per_gpu;  // Time between calls, at least, of a process with one GPU.
  SimTime shared_process;   // With several GPUs, plus
  SimTime per_gpu;          // this for each of them, and
  SimTime per_channel;      // this for each channel of each of them.
  SimTime per_send;         // For each send or receive of a call, the time to enqueue it.
  double graph = 1.0;       // Share of it that a replayed CUDA graph takes.
  SimTime together;         // For each GPU that a process launches together with others.
};

// Names which constants of the event model the times of a machine rest on: those of a generation of
// GPUs, of the links inside a server and of a network.
struct MachineKind {
  std::string gpu;  // As in Profile::gpus: "hopper"; of several the oldest.
  // "nvswitch", "nvswitch-rack" (several servers in a domain), "nvlink" (mesh or bridge), "xgmi",
  // "pcie"; "none": one GPU a node.
  std::string scale_up;
  std::string network;  // As in Profile::networks: "rdma"; "none" on one node.

  auto operator<=>(const MachineKind&) const = default;
};
// "hopper, nvswitch, rdma".
[[nodiscard]] std::string to_string(const MachineKind& kind);

// The measurements that a profile of one machine rests on, and which predictions are beyond them.
struct ProfileBasis {
  struct Rows {
    Operation operation = Operation::AllReduce;
    int ranks = 0;
    Bytes min;  // Sizes, both included.
    Bytes max;
    std::size_t count = 0;
  };
  MachineKind machine;
  std::vector<Rows> rows;  // At least one; one for each operation and number of ranks.

  // Names what is beyond the rows: "no row of alltoall", "rows of all_reduce with 8 ranks, not 16",
  // "rows of all_reduce from 1KiB to 64MiB"; nothing if all is within.
  [[nodiscard]] std::optional<std::string> beyond(const MachineKind& of, Operation operation,
                                                  int ranks, Bytes size) const;
};

struct Profile {
  // Start and end of a kernel.
  ProtocolTimes ring_base;
  ProtocolTimes tree_base;
  SimTime per_channel;  // Later start of the blocks of a kernel, for each of them.
  SimTime pat_base;
  SimTime nvls_tree_sync;
  // Extra time of a path through the switches that reduce, above a hop of a ring.
  SimTime collnet_extra;
  // Extra time of a tree's hop over the network, above that of a ring.
  ProtocolTimes tree_network_extra;
  // GPUs by architecture, as in configs/hardware/gpus.yaml.
  std::map<std::string, GpuProfile> gpus;
  // Latency of a transport beside the costs of the receiver's block, until it sees a unit.
  SimTime nvswitch;       // Latency of an NVSwitch on the way.
  int units_in_step = 0;  // Until blocks that read over NVLink have come apart.
  ProtocolTimes pcie;
  ProtocolTimes host;
  Bandwidth ll_check_rate;        // Data of LL that a thread of Grace looks at, line by line.
  SimTime staged_ll_pass;         // Extra time of each pass of LL through host memory.
  double pcie_rate = 1.0;         // Share of a PCIe link that kernels get with both ways in use.
  double pcie_ll_rate = 0.5;      // Data of LL over the rate of a PCIe link.
  double staging_rate = 1.0;      // Share of what copies through host memory get (ServerTraits).
  double host_bridge_rate = 1.0;  // Share of the path between GPU and NIC across a host bridge.
  std::map<std::string, NetworkProfile> networks;  // Networks by name: "rdma", "socket", ...
  // Network of each NIC of the catalogue; others: "rdma".
  std::map<std::string, std::string> network_of_nic;
  LaunchProfile launch;
  std::optional<ProfileBasis> basis = {};  // Basis of profiles that `trainyard calibrate` wrote.

  [[nodiscard]] static Profile load(const std::filesystem::path& file);
  // The same of a document that is there, which may have other values than its file.
  [[nodiscard]] static Profile read(ConfigDocument& document);
};

void profile_fields(Fields& fields, Profile& profile);
void basis_fields(Fields& fields, ProfileBasis& basis);

}  // namespace trainyard::nccl
