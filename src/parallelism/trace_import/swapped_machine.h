// SPDX-License-Identifier: Apache-2.0
// Computation that was recorded on one GPU, on another: each kernel takes so much longer or shorter
// as the rates of its kind differ.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/workload/gpu_rates.h"

namespace trainyard {

enum class KernelKind : std::uint8_t {
  Product,    // Products of matrices, and convolutions.
  Attention,  // Attention in one kernel.
  HostCopy,   // A copy to or from the host, whose time is kept.
  Memory,     // All others.
};
inline constexpr std::size_t kKernelKinds = 4;

// Goes by words in the names that cuBLAS, cuDNN, CUTLASS, rocBLAS, Triton and PyTorch give kernels.
[[nodiscard]] KernelKind kind_of_kernel(std::string_view name);

// Times on `to` over those on `from`, by KernelKind, in millionths.
using SwapFactors = std::array<std::int64_t, kKernelKinds>;
[[nodiscard]] SwapFactors swap_factors(const ComputeRates& from, const ComputeRates& to);

// The factor of each operation, for GraphRunOptions::operation_ppm: `ppm`, if it has any, times
// these.
[[nodiscard]] std::vector<std::int64_t> swapped_ppm(const OperationGraph& graph,
                                                    const SwapFactors& factors,
                                                    std::vector<std::int64_t> ppm = {});

}  // namespace trainyard
