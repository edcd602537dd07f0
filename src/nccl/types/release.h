// SPDX-License-Identifier: Apache-2.0
// How releases of NCCL differ outside of the tuning model (tuning_constants.h): one row for each,
// read from the sources of NVIDIA/nccl at the tag of the release that to_string() names. Functions
// beside the fields are those of its sources.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "nccl/types/gpu_generation.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

// Which channels the search doubles at half the bandwidth (src/graph/search.cc:
// ncclTopoDupChannels).
enum class Doubling : std::uint8_t {
  None,
  Fast,            // From 25 GB/s on.
  FastButHopper,   // From 25 GB/s on, from compute capability 81 on from 50 GB/s on.
  FastUnlessMany,  // From 25 GB/s on, but not more than four below 50 GB/s on newer GPUs.
};

// When fast rings of several nodes have twice the channels (src/graph/connect.cc:
// ncclTopoPostset).
enum class FastRings : std::uint8_t {
  Alike,
  UpToMax,     // On compute capability 90, as long as there are channels.
  Hopper,      // On compute capability 90, with fewer than 16 channels.
  FromHopper,  // From compute capability 90 on, with fewer than 16 channels.
};

// How far apart GPUs access each other's memory where nothing is set (src/graph/paths.cc:
// ncclTopoCheckP2p; before 2.6 src/transport/p2p.cc).
enum class PeerRule : std::uint8_t {
  WithinSocket,
  NotBroadwell,        // Everywhere, but on Broadwell and Arm over PCIe switches alone.
  IntelWithinSocket,   // The same, but on newer Intel CPUs within a socket.
  NotIntel,            // Everywhere, but on Intel, Zhaoxin and Arm over PCIe switches alone.
  SwitchesOrAmdPairs,  // Over PCIe switches; everywhere where an AMD host has two GPUs.
};

// Up to which size sends and receives use LL (src/enqueue.cc: addP2pToPlan).
enum class LlSends : std::uint8_t {
  None,
  ByChannel,         // NCCL_P2P_LL_THRESHOLD for each channel that the send has with Simple.
  UpToMostChannels,  // The same for each channel that a send may have at most.
};

struct Release {
  int max_channels = kMaxChannels;  // src/include/devcomm.h: MAXCHANNELS.
  // src/graph/topo.h, topo.cc: GB/s of an NVLink of Volta, Ampere, Hopper, Blackwell, in the order
  // of GpuGeneration::tuning_row, and between sockets from Skylake on.
  std::array<float, 4> nvlink = {20.0F, 20.0F, 20.6F, 40.1F};
  float skylake_sockets = 10.0F;
  bool knows_amd_sockets = true;          // Others have no limit.
  bool knows_newer_intel_sockets = true;  // Sapphire Rapids and Emerald Rapids.
  // src/graph/search.cc.
  bool channel_has_one_nvlink = false;  // A channel has at most one link's bandwidth.
  bool bounds_channels_by_gpu = true;   // A GPU's links bound the first speed that is tried.
  bool tries_tree_after_balanced = true;
  bool keeps_channels_alike_on_amd = true;  // Where their ways lead over sockets of AMD.
  PeerRule peers = PeerRule::SwitchesOrAmdPairs;
  Doubling doubling = Doubling::FastUnlessMany;
  FastRings fast_rings = FastRings::FromHopper;
  bool copies_pcie_rings = true;  // Channels without NVLink are doubled, as those with NVLink are.
  // src/enqueue.cc: chunks of Tree Simple shrink with the depth of the tree.
  bool shrinks_tree_chunks = false;
  // src/collectives/device/all_reduce.h: trees with LL and Simple reduce all of a channel's part
  // before they broadcast any of it.
  bool reduces_before_broadcast = false;
  // The kernels of all GPUs of a process are launched in one call (src/enqueue.cc:
  // ncclLaunchCooperativeKernelMultiDevice), which waits for those before.
  bool launches_together = false;
  LlSends ll_sends = LlSends::ByChannel;
};

[[nodiscard]] const Release& release(Version version);

// GB/s of one NVLink.
[[nodiscard]] float nvlink_bandwidth(Version version, const GpuGeneration& generation);

// GB/s of a channel that the search tries, falling (src/graph/search.cc: speedArrayIntra and the
// others).
[[nodiscard]] std::span<const float> search_speeds(Version version, const GpuGeneration& generation,
                                                   bool several_nodes);

}  // namespace trainyard::nccl
