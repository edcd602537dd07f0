// SPDX-License-Identifier: Apache-2.0
// The kinds of GPUs that the ranks of a cluster have, and what each brings to a step: its rates and
// its memory (docs/models/step.md).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/walk/step_job.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct GpuKinds {
  std::vector<const GpuModel*> models;  // In the order of the first rank of each.
  std::vector<int> of_rank = {};        // Empty if there is one kind.

  // Returns the rates of each kind, with the share of overlapped traffic that shows most of all
  // kinds, as a collective is over when it is on its slowest rank. Throws as compute_rates().
  [[nodiscard]] std::vector<ComputeRates> rates(const GpuRates& all,
                                                const SoftwareProfile& software,
                                                Precision precision) const;
  // Returns the mean over ranks of the peaks of their GPUs.
  [[nodiscard]] double mean_peak(std::span<const ComputeRates> rates) const;
  // Returns the GPU with the least memory, the first of equal ones.
  [[nodiscard]] const GpuModel& smallest() const;
  // The same among the ranks of each place in the pipeline.
  [[nodiscard]] std::vector<const GpuModel*> smallest_by_place(const ParallelPlan& plan) const;
};

// The cluster must outlive the result.
[[nodiscard]] GpuKinds gpu_kinds(const Cluster& cluster);

// The one kind of GPU that all ranks have. Throws ConfigError if there are several: `what` says for
// what.
[[nodiscard]] const GpuModel& gpu_of(const Cluster& cluster, const std::string& what);

// Says which kinds there are and which of them each place in the pipeline waits for; nothing for
// one kind.
[[nodiscard]] std::optional<std::string> kinds_note(const GpuKinds& kinds, const StepJob& job);

}  // namespace trainyard
