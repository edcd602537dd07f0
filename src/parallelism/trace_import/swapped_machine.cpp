// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/swapped_machine.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace trainyard {
namespace {

constexpr std::int64_t kUnchangedPpm = 1'000'000;

template <std::size_t count>
bool has_any(std::string_view name, const std::array<std::string_view, count>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

std::int64_t ppm_of(double from_rate, double to_rate) {
  return std::llround(from_rate / to_rate * 1e6);
}

}  // namespace

KernelKind kind_of_kernel(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  constexpr std::array<std::string_view, 6> kHostCopies{"htod", "dtoh",         "h2d",
                                                        "d2h",  "hosttodevice", "devicetohost"};
  if (lower.find("memcpy") != std::string::npos && has_any(lower, kHostCopies)) {
    return KernelKind::HostCopy;
  }
  // Normalisation and reductions of cuDNN and others have their names around these words.
  constexpr std::array<std::string_view, 3> kNeither{"splitkreduce", "im2col", "batchnorm"};
  constexpr std::array<std::string_view, 4> kAttention{"flash", "fmha", "attention", "attn"};
  constexpr std::array<std::string_view, 9> kProducts{
      "gemm", "cutlass", "nvjet", "xmma", "matmul", "convolve", "wgrad", "dgrad", "cijk_"};
  constexpr std::array<std::string_view, 4> kConvolutions{"fprop", "implicit_convolve", "conv2d",
                                                          "winograd"};
  if (has_any(lower, kNeither)) {
    return KernelKind::Memory;
  }
  if (has_any(lower, kAttention)) {
    return KernelKind::Attention;
  }
  return has_any(lower, kProducts) || has_any(lower, kConvolutions) ? KernelKind::Product
                                                                    : KernelKind::Memory;
}

SwapFactors swap_factors(const ComputeRates& from, const ComputeRates& to) {
  SwapFactors factors{};
  const auto set = [&](KernelKind kind, std::int64_t ppm) {
    factors[static_cast<std::size_t>(kind)] = ppm;
  };
  set(KernelKind::Product, ppm_of(from.gemm_rate, to.gemm_rate));
  set(KernelKind::Attention, ppm_of(from.attention_forward, to.attention_forward));
  set(KernelKind::HostCopy, kUnchangedPpm);
  set(KernelKind::Memory, ppm_of(from.memory_rate, to.memory_rate));
  return factors;
}

std::vector<std::int64_t> swapped_ppm(const OperationGraph& graph, const SwapFactors& factors,
                                      std::vector<std::int64_t> ppm) {
  ppm.resize(graph.operations().size(), kUnchangedPpm);
  for (std::uint32_t index = 0; index < ppm.size(); ++index) {
    const OperationId id(index);
    if (graph.operation(id).kind == GraphOperationKind::Compute) {
      const KernelKind kind = kind_of_kernel(graph.name_of(id));
      const __int128 product =
          static_cast<__int128>(ppm[index]) * factors[static_cast<std::size_t>(kind)];
      ppm[index] = static_cast<std::int64_t>(product / kUnchangedPpm);
    }
  }
  return ppm;
}

}  // namespace trainyard
