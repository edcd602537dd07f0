// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/host_launches.h"

#include <algorithm>
#include <vector>

#include "parallelism/model/adapters.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/operators/time_arithmetic.h"

namespace trainyard {
namespace {

// Kernels of a layer backward over those forward: fitted to the small models of vTrain's tables.
constexpr double kBackwardHost = 1.3;

int tensor_calls(const std::vector<GroupCall>& calls) {
  int count = 0;
  for (const GroupCall& call : calls) {
    count += call.group == RankGroupKind::Tensor ? call.times : 0;
  }
  return count;
}

// Tokens go to other ranks, or each expert has a kernel of its own: the host needs their counts.
bool waits_for_counts(const SoftwareProfile& software, const std::vector<GroupCall>& calls) {
  return !software.joins_experts || std::ranges::any_of(calls, [](const GroupCall& call) {
    return call.group == RankGroupKind::Expert;
  });
}

// `passes` forward passes of kernels, and so many collectives.
HostLaunches launches_of(const ComputeRates& rates, const SoftwareProfile& software,
                         const ModelLayer& layer, double passes, int collectives,
                         const std::vector<GroupCall>& calls) {
  const SimTime kernels = scaled(rates.host_layer, passes);
  const SimTime called = rates.host_collective * collectives;
  if (layer.experts) {
    const SimTime all = scaled(kernels, software.host_expert) + called;
    const double waited = waits_for_counts(software, calls) ? software.host_expert_sync : 0.0;
    return {.all = all,
            .shown = std::max(scaled(all, software.host_sync), scaled(kernels, waited))};
  }
  const SimTime all = kernels + called;
  return {.all = all, .shown = scaled(all, software.host_sync)};
}

// Kernels of an eager layer with RMS norms, rotary positions and a gate, an estimate from
// huggingface/transformers (models/llama/modeling_llama.py); of an adapter, two products, scale and
// sum (huggingface/peft, tuners/lora/layer.py); of a matrix of 4 bits, its scales and itself
// (bitsandbytes, functional.py, dequantize_4bit with nested scales).
constexpr double kLayerKernels = 40.0;
constexpr double kAdapterKernels = 4.0;
constexpr double kDequantisingKernels = 2.0;

}  // namespace

double adapter_launches(const Model& model, const ModelLayer& layer) {
  const auto adapters = static_cast<double>(adapted_matrices(model, layer, 1).size());
  // There queries, keys and values are one.
  const std::int64_t matrices = rank_parameters(model, layer, {}).dense_matrices + 2;
  const double quantised = has_quantised_base(model) ? static_cast<double>(matrices) : 0.0;
  return (kAdapterKernels * adapters + kDequantisingKernels * quantised) / kLayerKernels;
}

HostLaunches forward_launches(const ComputeRates& rates, const SoftwareProfile& software,
                              const ModelLayer& layer, const PassCalls& calls) {
  return launches_of(rates, software, layer, 1.0, tensor_calls(calls.forward), calls.forward);
}

HostLaunches backward_launches(const ComputeRates& rates, const SoftwareProfile& software,
                               const ModelLayer& layer, const PassCalls& calls,
                               Recompute recompute) {
  const bool is_run_again = recompute == Recompute::Full;
  return launches_of(
      rates, software, layer, kBackwardHost + (is_run_again ? 1.0 : 0.0),
      tensor_calls(calls.backward) + (is_run_again ? tensor_calls(calls.forward) : 0),
      calls.backward);
}

}  // namespace trainyard
