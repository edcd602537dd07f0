// SPDX-License-Identifier: Apache-2.0
// The numbers of NCCL's tuning model, by release. Source: NVIDIA/nccl, src/graph/tuning.cc at the
// tag of each release (baseLat, hwLat, ncclTopoTuneModel, treeCorrectionFactor; from 2.28 on
// ncclTunerConstantsDefaults and nvlsEfficiency), where they are doubles. 2.4 has a model of its
// own (first_model.h).
//
// They choose an algorithm; they do not predict a time and are never fitted to measurements.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "nccl/types/gpu_generation.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

using ByProtocol = std::array<double, 3>;                  // [protocol]
using ByFunction = std::array<double, 5>;                  // [function]
using ByAlgorithmAndProtocol = std::array<ByProtocol, 7>;  // [algorithm][protocol]
using ByScale = std::array<double, 3>;                     // One node, two, more.
using ByGeneration = std::array<double, 4>;                // [GpuGeneration::tuning_row]
// [GpuGeneration::tuning_row][scale]: Volta, Ampere, Hopper, Blackwell.
using ByGenerationAndScale = std::array<ByScale, 4>;

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The bandwidth of NVLS and NVLSTree is made of one of these.
enum class NvlsModel : std::uint8_t {
  None,
  RingGraph,    // 3/4 of the rings; one node (2.17).
  OwnGraph,     // 5/6 of its own graph; NVLSTree 0.7 N / 2(N-1) of it; AllReduce alone (2.18).
  Slower,       // 5/6 of the slower of NVLink and network, half of it for NVLSTree from three nodes
                // on (2.19 to 2.22).
  WholeGather,  // The same, but what gathers or scatters gets all of it (2.23 to 2.26).
  OtherGpus,    // The same, but what gathers or scatters gets (p - 1) / p of NVLink, or 0.9 of the
                // network (2.27).
  Efficiency,   // nvls_efficiency and nvls_tree_max (from 2.28 on).
};

// The latency that a NIC states.
enum class NicLatency : std::uint8_t { Ignored, Replaces, Adds };

// When the latency of Ring Simple on several nodes is multiplied.
enum class Plateau : std::uint8_t {
  None,
  BySize,        // 1.9 from 4 KiB a rank on (2.7 to 2.16).
  BySizeHopper,  // The same, but 1.5 from compute capability 90 on (2.17).
  ByChannel,     // GpuGeneration::ring_latency_factor from 64 bytes a rank and channel on.
};

// Where LL128 is used without being asked for.
struct Ll128Rule {
  std::span<const int> compute_capabilities = {};  // All known ones if empty.
  PathType intra = PathType::Nvb;
  PathType inter = PathType::Pxb;
  bool reaches_pxn = true;  // On GPUs from compute capability 90 on.
  bool mixes = true;        // Generations, from compute capability 90 on.
};

struct TuningConstants {
  ByAlgorithmAndProtocol base_latency = {};  // Microseconds, as are the next three.
  ByAlgorithmAndProtocol nvlink_latency = {};
  ByAlgorithmAndProtocol pci_latency = {};
  ByAlgorithmAndProtocol net_latency = {};
  // True if only compute capabilities 80 and 90 have rows; all others have that of Volta.
  bool has_exact_rows = false;
  ByGeneration bus_max = {kNoLimit, kNoLimit, kNoLimit, kNoLimit};  // GB/s.
  // GB/s of all channels together. On one node by generation; on several the row of Volta, or that
  // of Ampere where the CPUs are AMD's or mixed.
  ByGenerationAndScale ll_max = {};
  // Shares of what all channels carry.
  double ring_ll_share = 0.5;
  double ring_ll_share_one_way = 0.5;  // Broadcast, AllGather, ReduceScatter on one node.
  double ring_ll128_share = 0.92;
  double ring_ll128_share_alone = 0.92;  // With less than two ranks in a node.
  double tree_share = 0.92;
  double tree_ll_share = 1.0 / 3.8;
  double tree_ll128_share_one_node = 7.0 / 9.0;
  double tree_ll128_share = 120.0 / 128.0;
  double simple_tree_share = 0.85;  // Graphs that are plain trees have it.
  double pat_share = 0.75;
  // GB/s of all channels together.
  ByFunction ring_ll128_total = {kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit};
  ByScale tree_total = {kNoLimit, kNoLimit, kNoLimit};
  ByScale tree_total_ll128_ampere = {kNoLimit, kNoLimit, kNoLimit};
  // GB/s of one channel.
  ByFunction ring_ll128_channel = {kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit};
  ByGenerationAndScale ring_ll128_max = {};
  ByGenerationAndScale tree_ll128_max = {};
  ByGenerationAndScale tree_simple_max = {};
  ByGenerationAndScale nvls_tree_max = {};
  ByGeneration nvls_efficiency = {};
  NvlsModel nvls_model = NvlsModel::Efficiency;
  bool has_pat = true;
  // Latencies.
  double ll_hop_factor = 1.0;          // For steps inside of nodes where there are several.
  bool is_network_everywhere = false;  // All steps of a ring on several nodes cross the network.
  int more_network_steps = 0;       // AllReduce by ring on several nodes has so many above 2(N-1).
  bool has_host_overhead = true;    // A step of a ring is no faster than its host posts.
  bool alone_waits_as_tree = true;  // Rings with a rank per node have the network latency of trees.
  NicLatency nic_latency = NicLatency::Adds;
  Plateau plateau = Plateau::ByChannel;
  // True if the correction by size holds for NVLSTree on x86 from compute capability 100 on.
  bool corrects_nvls_tree = false;
  Ll128Rule ll128;
};

[[nodiscard]] const TuningConstants& tuning_constants(Version version);

// Returns the factor of the latency of Ring Simple on several nodes, for `size` bytes in all.
[[nodiscard]] double plateau_factor(Plateau plateau, const GpuGeneration& generation, int ranks,
                                    int channels, std::int64_t size);

inline constexpr std::size_t kTreeCorrections = 24;
// Returns the factors of the bandwidth of trees, by log2 of the size in units of 64 bytes.
[[nodiscard]] const std::array<float, kTreeCorrections>& tree_correction(
    Protocol protocol, Version version = kNewestVersion);

}  // namespace trainyard::nccl
