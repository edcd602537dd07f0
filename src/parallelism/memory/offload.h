// SPDX-License-Identifier: Apache-2.0
// Lists what a plan keeps in host memory instead of on the GPU, and how long the copies there and
// back take.
//
// The optimizer on the host: gradients of the rank's shard go down while or after they are reduced,
// the CPU updates in tiles, and while it works on one the new 16-bit weights of the one before come
// up. ZeRO-Offload: Ren et al., arXiv 2101.06840, sections 4 and 5. Activations of a layer go down
// after its forward and come up before its backward, beside the layers next to it. ZeRO-Infinity:
// Rajbhandari et al., arXiv 2104.07857, section 5. docs/models/step.md has the closed forms.
#pragma once

#include <cstdint>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"

namespace trainyard {

// Parameters that the rank's own optimizer updates, of those that it holds.
[[nodiscard]] std::int64_t owned_parameters(const RankParameters& parameters,
                                            const ParallelPlan& plan);

// Returns what one rank keeps of one layer, counted from 0, and micro-batch for its backward.
[[nodiscard]] Bytes layer_activations(const Model& model, int of_model, const ParallelPlan& plan,
                                      const SoftwareProfile& software,
                                      const ExpertLoads& loads = {});

// Returns the time of a CPU's update of so many parameters, `optimizer_bytes` of which pass its
// memory for each.
[[nodiscard]] SimTime host_work_time(std::int64_t parameters, double optimizer_bytes,
                                     Bandwidth memory);

// A part of the update: the CPU's work, and the copy of the weights that come of it.
struct HostTile {
  SimTime update;
  SimTime copy;
};
[[nodiscard]] std::vector<HostTile> host_tiles(std::int64_t parameters, double optimizer_bytes,
                                               int weight_bytes, const HostRates& rates);

// The tiles one after the other, copies beside the updates that follow: the way that takes longest.
struct HostUpdate {
  SimTime optimizer;
  SimTime copies;

  [[nodiscard]] SimTime total() const { return optimizer + copies; }
};
[[nodiscard]] HostUpdate host_update(const std::vector<HostTile>& tiles);

}  // namespace trainyard
