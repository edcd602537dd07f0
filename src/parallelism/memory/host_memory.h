// SPDX-License-Identifier: Apache-2.0
// Host memory of a plan with offload: what the ranks of each server keep there together, against
// what the cluster file says that the server has.
#pragma once

#include <optional>
#include <string>

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/parallel_plan.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Use of the server that lacks most or, where none lacks any, holds most. Peaks of ranks are added
// up, whenever they are.
struct HostMemoryUse {
  HostedMemory hosted;
  std::optional<Bytes> size = {};  // Nothing: the file does not say.

  [[nodiscard]] bool fits() const { return !size || hosted.total() <= *size; }
  // One line.
  [[nodiscard]] std::string verdict() const;
};

// `memory` of the plan, whose rank r is GPU r of the cluster.
[[nodiscard]] HostMemoryUse host_memory_use(const Cluster& cluster, const ParallelPlan& plan,
                                            const StepMemory& memory);

}  // namespace trainyard
