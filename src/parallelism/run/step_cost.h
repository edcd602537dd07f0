// SPDX-License-Identifier: Apache-2.0
// Computes what a training step draws and costs, from its parts and those of the cluster
// (docs/commands/cost.md has the model). A value that nobody states is absent, never zero.
#pragma once

#include <optional>

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/step_parts.h"
#include "sim/units.h"
#include "topology/server/part_costs.h"

namespace trainyard {

struct StepCost {
  double tokens = 0.0;
  double busy = 0.0;  // Share of the step in which the critical rank of the pipeline computes.
  std::optional<double> joules = {};   // Energy of the parts that state their watts.
  std::optional<double> capital = {};  // Price of the parts for the time of the step,
  std::optional<double> energy = {};   // and of the energy.

  [[nodiscard]] std::optional<double> joules_of_token() const;
  [[nodiscard]] std::optional<double> kwh_of_tokens(double count) const;
  // Returns the price of parts and energy, as far as they are stated; nothing if neither is.
  [[nodiscard]] std::optional<double> price_of_tokens(double count) const;
};

// Time of the parts in which GPUs compute: of the optimizer too, unless CPUs do it.
[[nodiscard]] SimTime computing_time(const StepParts& parts, const ParallelPlan& plan);

// The power of a cluster in a step: everything but the GPUs its limit and the GPUs what they draw
// idle, all the time; and the GPUs the rest of their limit while they compute.
struct StepPower {
  double always = 0.0;  // Watts.
  double computing = 0.0;

  [[nodiscard]] double joules(SimTime time, SimTime computes) const {
    return always * time.seconds() + computing * computes.seconds();
  }
};

[[nodiscard]] StepPower step_power(const CostTotals& totals);

// Returns the cost of a step of the plan on that cluster.
[[nodiscard]] StepCost step_cost(const ClusterCosts& costs, const ParallelPlan& plan,
                                 const StepTime& step);

}  // namespace trainyard
