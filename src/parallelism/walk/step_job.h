// SPDX-License-Identifier: Apache-2.0
// Collects what a training step is computed from: model and plan, the rates of what runs it, and
// where its ranks are.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "sim/units.h"

namespace trainyard {

// The traffic that runs overlapped with computation, after the workload had its say.
struct Overlap {
  bool tensor = false;
  bool data = false;
  bool pipeline = false;
  bool expert = false;
};
[[nodiscard]] Overlap overlap_of(const OverlapChoice& choice, const SoftwareProfile& software);

struct StepJob {
  const Model& model;
  const ParallelPlan& plan;  // Plan that passed check().
  const ComputeRates& rates;
  const SoftwareProfile& software;
  Overlap overlap;
  std::span<const int> server_of_rank;  // A number for each rank.
  // The NVLink domain of each rank; empty: servers are domains.
  std::span<const int> domain_of_rank = {};
  ExpertLoads loads = {};
  std::optional<HostRates> host = {};  // Rates of copies; for plans with offload.
  // The rates of each kind of GPU, `rates` first, and the kind of each rank; empty: all are alike.
  std::span<const ComputeRates> kinds = {};
  std::span<const int> kind_of_rank = {};

  [[nodiscard]] int kind_count() const {
    return kind_of_rank.empty() ? 1 : static_cast<int>(kinds.size());
  }
  [[nodiscard]] std::span<const int> domains() const {
    return domain_of_rank.empty() ? server_of_rank : domain_of_rank;
  }
};

// Returns the kinds of GPUs among the ranks of each place in the pipeline, in rising order. An
// empty `kind_of_rank` stands for kind 0 alone.
[[nodiscard]] std::vector<std::vector<int>> kinds_by_place(const ParallelPlan& plan,
                                                           std::span<const int> kind_of_rank);

// The same for each stage of the model, which two places have in schedules of two directions.
[[nodiscard]] std::vector<std::vector<int>> kinds_by_stage(const ParallelPlan& plan,
                                                           std::span<const int> kind_of_rank);

// Returns the job as if all GPUs were of that kind. `job` must outlive the result.
[[nodiscard]] StepJob on_kind(const StepJob& job, int kind);

// Throws ConfigError, one line, for what is not modelled.
void check_modelled(const StepJob& job);

// Returns the time that the ranks of so many servers lose by waiting for each other in a step that
// takes so long without it.
[[nodiscard]] SimTime jitter_of(SimTime step, std::span<const int> server_of_rank);

}  // namespace trainyard
