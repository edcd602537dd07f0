// SPDX-License-Identifier: Apache-2.0
// Computes how long the host is busy with one layer of one micro-batch: kernels that it launches,
// and collectives of tensor ranks. docs/models/step.md.
#pragma once

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/walk/step_traffic.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"

namespace trainyard {

struct HostLaunches {
  SimTime all;  // A pass is no shorter.
  // The share of it that comes on top of the pass: the host waits for the GPU first.
  SimTime shown;
};

// Returns the launches of adapters, and of what brings frozen matrices from 4 bits, over those of
// the layer itself.
[[nodiscard]] double adapter_launches(const Model& model, const ModelLayer& layer);

[[nodiscard]] HostLaunches forward_launches(const ComputeRates& rates,
                                            const SoftwareProfile& software,
                                            const ModelLayer& layer, const PassCalls& calls);
// Returns the backward launches, with those of a full recomputation among them.
[[nodiscard]] HostLaunches backward_launches(const ComputeRates& rates,
                                             const SoftwareProfile& software,
                                             const ModelLayer& layer, const PassCalls& calls,
                                             Recompute recompute);

}  // namespace trainyard
