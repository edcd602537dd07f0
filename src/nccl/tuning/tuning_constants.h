// SPDX-License-Identifier: Apache-2.0
// The numbers of NCCL's tuning model, by release. Source: NVIDIA/nccl, src/graph/tuning.cc
// (ncclTunerConstantsDefaults, nvlsEfficiency, treeCorrectionFactor) and
// src/include/plugin/tuner/tuner_v5.h, where they are doubles.
//
// They choose an algorithm; they do not predict a time and are never fitted to measurements.
#pragma once

#include <array>
#include <cstddef>

#include "nccl/types/types.h"

namespace trainyard::nccl {

using ByProtocol = std::array<double, 3>;                  // [protocol]
using ByAlgorithmAndProtocol = std::array<ByProtocol, 7>;  // [algorithm][protocol]
using ByScale = std::array<double, 3>;                     // One node, two, more.
// [GpuGeneration::tuning_row][scale]: Volta, Ampere, Hopper, Blackwell.
using ByGenerationAndScale = std::array<ByScale, 4>;

struct TuningConstants {
  ByAlgorithmAndProtocol base_latency = {};  // Microseconds, as are the next three.
  ByAlgorithmAndProtocol nvlink_latency = {};
  ByAlgorithmAndProtocol pci_latency = {};
  ByAlgorithmAndProtocol net_latency = {};
  // GB/s of all channels together. On one node by generation; on several the row of Volta, or that
  // of Ampere where the CPUs are AMD's or mixed.
  ByGenerationAndScale ll_max = {};
  // GB/s of one channel.
  ByGenerationAndScale ring_ll128_max = {};
  ByGenerationAndScale tree_ll128_max = {};
  ByGenerationAndScale tree_simple_max = {};
  ByGenerationAndScale nvls_tree_max = {};     // Infinite in releases without a limit.
  std::array<double, 4> nvls_efficiency = {};  // [tuning_row]
  // True if the correction by size holds for NVLSTree on x86 from compute capability 100 on.
  bool corrects_nvls_tree = false;
};

[[nodiscard]] const TuningConstants& tuning_constants(Version version);

inline constexpr std::size_t kTreeCorrections = 24;
// Returns the factors of the bandwidth of trees, by log2 of the size in units of 64 bytes.
[[nodiscard]] const std::array<float, kTreeCorrections>& tree_correction(Protocol protocol);

}  // namespace trainyard::nccl
