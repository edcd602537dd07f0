// SPDX-License-Identifier: Apache-2.0
// Collects what a training step is computed from: model and plan, the rates of what runs it, and
// where its ranks are.
#pragma once

#include <optional>
#include <span>

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

  [[nodiscard]] std::span<const int> domains() const {
    return domain_of_rank.empty() ? server_of_rank : domain_of_rank;
  }
};

// Throws ConfigError, one line, for what is not modelled.
void check_modelled(const StepJob& job);

// Returns the time that the ranks of so many servers lose by waiting for each other in a step that
// takes so long without it.
[[nodiscard]] SimTime jitter_of(SimTime step, std::span<const int> server_of_rank);

}  // namespace trainyard
