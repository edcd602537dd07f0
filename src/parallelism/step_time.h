// SPDX-License-Identifier: Apache-2.0
// The time of one training step, in parts that add up to it exactly.
//
// Layers and ends of the model make passes of stages, passes a pipeline (pipeline_timeline.h). The
// step is the time line of its busiest rank: what it computes, the traffic that shows, and what it
// waits for; then gradients, optimizer and weights. Exposed traffic is worked out from closed forms
// over the times of collectives alone; docs/step.md has all of them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parallelism/expert_routing.h"
#include "parallelism/gpu_rates.h"
#include "parallelism/group_times.h"
#include "parallelism/model.h"
#include "parallelism/parallel_plan.h"
#include "parallelism/software_profile.h"
#include "parallelism/step_parts.h"
#include "parallelism/workload.h"

namespace trainyard {

// What runs beside computation, after the workload had its say.
struct Overlap {
  bool tensor = false;
  bool data = false;
  bool pipeline = false;
  bool expert = false;
};
[[nodiscard]] Overlap overlap_of(const OverlapChoice& choice, const SoftwareProfile& software);

struct StepJob {
  const Model& model;
  const ParallelPlan& plan;  // That passed check().
  const ComputeRates& rates;
  const SoftwareProfile& software;
  Overlap overlap;
  std::span<const int> server_of_rank;  // A number for each rank.
  // The NVLink domain of each rank; empty: servers are domains.
  std::span<const int> domain_of_rank = {};
  ExpertLoads loads = {};
};

struct StepTime {
  SimTime time;
  StepParts parts;       // Add up to `time`.
  int busiest_rank = 0;  // Of the pipeline.
  // Of the busiest rank for one micro-batch, all its chunks.
  SimTime forward;
  SimTime backward;
};

// Launching a layer backward over forward: fitted to the small models of vTrain's tables.
inline constexpr double kBackwardHost = 1.3;

// Throws ConfigError, one line, for what is not modelled.
void check_modelled(const StepJob& job);

// What the ranks of so many servers lose by waiting for each other in a step that takes so long
// without it.
[[nodiscard]] SimTime jitter_of(SimTime step, std::span<const int> server_of_rank);

// Throws as check_modelled().
[[nodiscard]] StepTime step_time(const StepJob& job, GroupTimes& times);

}  // namespace trainyard
