// SPDX-License-Identifier: Apache-2.0
// How releases of NCCL differ outside of the tuning model (tuning_constants.h): one row for each,
// read from the sources of NVIDIA/nccl at the tag of the release that to_string() names. Functions
// beside the fields are those of its sources.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

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

// How chunks of Tree Simple become smaller (src/enqueue.cc).
enum class TreeChunks : std::uint8_t {
  Whole,
  ByNodes,  // Few of them for the nodes of the tree and the ranks of a node.
  ByDepth,  // Few of them for the depth of the tree; RCCL.
};

// Where a channel goes from a GPU on NVSwitches (src/graph/search.cc: ncclTopoSearchNextGpuSort).
enum class NextGpus : std::uint8_t {
  ByScore,          // As without switches.
  NeighboursFirst,  // To the GPUs beside it, then to others by score.
  Neighbours,       // To these alone.
};

// Which GPUs a channel may begin with at a NIC (ncclTopoSearchRecNet).
enum class FirstGpus : std::uint8_t {
  Nearest,   // In the order of the file, after the order of the file itself as a mark to beat.
  FromTurn,  // From the one of the channel's own number on.
  OwnFirst,  // The NIC's own, then the others that are as near.
};

// How near a GPU on C2C to a CPU is to that CPU's NICs (src/graph/paths.cc, topo.h: PATH_P2C).
enum class NicsOverC2c : std::uint8_t {
  Far,        // As any other GPU below a host bridge.
  FarOnPath,  // The same, but with NCCL_NET_GDR_C2C=1 they read and write its memory.
  Near,       // A type of path of its own, P2C.
};

struct Release {
  int max_channels = kMaxChannels;  // src/include/devcomm.h: MAXCHANNELS.
  // src/graph/topo.h, topo.cc: GB/s of an NVLink of Volta, Ampere, Hopper, Blackwell, in the order
  // of GpuGeneration::tuning_row, and between sockets from Skylake on.
  std::array<float, 4> nvlink = {20.0F, 20.0F, 20.6F, 40.1F};
  float skylake_sockets = 10.0F;
  bool knows_amd_sockets = true;          // Others have no limit.
  bool knows_newer_intel_sockets = true;  // Sapphire Rapids and Emerald Rapids.
  // src/graph/paths.cc.
  bool hands_over = true;           // A GPU sends through another one that is near the NIC (PXN).
  bool hands_over_from_c2c = true;  // Also to one that has the NIC at P2C: NCCL_PXN_C2C unset.
  NicsOverC2c nics_over_c2c = NicsOverC2c::Near;
  // src/graph/search.cc.
  bool channel_has_one_nvlink = false;  // A channel has at most one link's bandwidth.
  bool bounds_channels_by_gpu = true;   // A GPU's links bound the first speed that is tried.
  bool tries_tree_after_balanced = true;
  std::int64_t search_budget = std::int64_t{1} << 19;  // Visits of GPUs; more before 2.12.
  NextGpus next_gpus = NextGpus::Neighbours;
  FirstGpus first_gpus = FirstGpus::OwnFirst;
  bool rotates_nics = true;       // A channel begins at the NIC of its own number.
  bool takes_own_nics = true;     // Otherwise the nearest first, from the GPU's number on.
  bool bounds_types = true;       // No type of path is asked for that no pair has.
  bool rings_need_two = true;     // Where two groups on NVLink have a slower link in between.
  bool crosses_in_pairs = true;   // Rings that cross NICs come in pairs (NCCL_CROSS_NIC=2).
  bool crosses_trees = false;     // Trees of all patterns are tried across NICs as well.
  double crossing_penalty = 0.0;  // Share of bandwidth that is given up not to cross NICs.
  bool doubles_last = false;      // After speeds were raised, and rings are not raised.
  bool trees_are_as_many_as_rings = true;   // Otherwise at most as many (init.cc).
  bool tree_asks_for_way_back = true;       // No way back to the parent is farther than allowed.
  bool keeps_channels_alike_on_amd = true;  // Where their ways lead over sockets of AMD.
  PeerRule peers = PeerRule::SwitchesOrAmdPairs;
  Doubling doubling = Doubling::FastUnlessMany;
  FastRings fast_rings = FastRings::FromHopper;
  bool copies_pcie_rings = true;  // Channels without NVLink are doubled, as those with NVLink are.
  TreeChunks tree_chunks = TreeChunks::Whole;  // With Simple.
  // src/enqueue.cc: MinTrafficPerChannel, the traffic of a cell, of which channels have whole ones;
  // 0: cells of 16 bytes.
  std::int64_t cell_traffic = std::int64_t{32} * 1024;
  int ll_traffic = 4;  // Factor on the traffic of LL, which sends flags.
  // src/collectives/device/all_reduce.h: trees with LL and Simple reduce all of a channel's part
  // before they broadcast any of it.
  bool reduces_before_broadcast = false;
  // The kernels of all GPUs of a process are launched in one call, which waits for those before
  // (src/init.cc: launchMode GROUP; src/enqueue.cc: ncclLaunchCooperativeKernelMultiDevice).
  bool launches_together = false;
  // The host writes the work of each channel into a queue of its own (src/enqueue.cc: getNextOp),
  // and makes no plan of what the process does as a whole.
  bool queues_each_channel = false;
  LlSends ll_sends = LlSends::ByChannel;
  // RCCL, all of whose releases have one row. Its rules stand in nccl/search/rccl_topologies.h and
  // nccl/tuning/rccl_tuning.h.
  std::string_view runtime = {};   // Its name in results; empty for NCCL, which has a number.
  bool knows_topologies = false;   // Machines have their rings ready; others few on xGMI.
  bool has_tuning_models = false;  // Estimates are those of a tuning model.
  bool copies_by_gpu = false;      // How many channels a ring has depends on the GPU.
  int threads = 0;                 // All blocks have so many; zero where the size decides.
  bool has_small_lines = false;    // Buffers of LL and LL128 are for half as many threads.
  bool decides_by_size = false;    // Protocols have sizes, and some calls have schedules.
};

[[nodiscard]] const Release& release(Version version);

// The row of the runtime of a GPU: RCCL's on AMD's GPUs whatever the version, else NCCL's.
[[nodiscard]] const Release& release(Version version, const GpuGeneration& generation);
[[nodiscard]] const Release& release(Version version, int compute_capability);

// GB/s of one NVLink.
[[nodiscard]] float nvlink_bandwidth(Version version, const GpuGeneration& generation);

// GB/s of a channel that the search tries, falling (src/graph/search.cc: speedArrayIntra and the
// others).
[[nodiscard]] std::span<const float> search_speeds(Version version, const GpuGeneration& generation,
                                                   bool several_nodes);

}  // namespace trainyard::nccl
