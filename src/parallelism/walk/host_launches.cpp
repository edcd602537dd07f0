// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/host_launches.h"

#include <algorithm>
#include <vector>

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

// `passes` forward passes of kernels, and so many collectives.
HostLaunches launches_of(const ComputeRates& rates, const SoftwareProfile& software,
                         const ModelLayer& layer, double passes, int collectives) {
  const SimTime kernels = scaled(rates.host_layer, passes);
  const SimTime called = rates.host_collective * collectives;
  if (layer.experts) {
    const SimTime all = scaled(kernels, software.host_expert) + called;
    return {.all = all,
            .shown = std::max(scaled(all, software.host_sync),
                              scaled(kernels, software.host_expert_sync))};
  }
  const SimTime all = kernels + called;
  return {.all = all, .shown = scaled(all, software.host_sync)};
}

}  // namespace

HostLaunches forward_launches(const ComputeRates& rates, const SoftwareProfile& software,
                              const ModelLayer& layer, const PassCalls& calls) {
  return launches_of(rates, software, layer, 1.0, tensor_calls(calls.forward));
}

HostLaunches backward_launches(const ComputeRates& rates, const SoftwareProfile& software,
                               const ModelLayer& layer, const PassCalls& calls,
                               Recompute recompute) {
  const bool is_run_again = recompute == Recompute::Full;
  return launches_of(
      rates, software, layer, kBackwardHost + (is_run_again ? 1.0 : 0.0),
      tensor_calls(calls.backward) + (is_run_again ? tensor_calls(calls.forward) : 0));
}

}  // namespace trainyard
