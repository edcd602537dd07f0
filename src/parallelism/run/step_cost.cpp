// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/step_cost.h"

namespace trainyard {
namespace {

constexpr double kJoulesOfKwh = 3.6e6;
constexpr double kSecondsOfYear = 365.25 * 86'400.0;

std::optional<double> scaled(const std::optional<double>& value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

}  // namespace

std::optional<double> StepCost::joules_of_token() const {
  return scaled(joules, 1.0 / tokens);
}

std::optional<double> StepCost::kwh_of_tokens(double count) const {
  return scaled(joules, count / tokens / kJoulesOfKwh);
}

std::optional<double> StepCost::price_of_tokens(double count) const {
  if (!capital && !energy) {
    return std::nullopt;
  }
  return (capital.value_or(0.0) + energy.value_or(0.0)) / tokens * count;
}

SimTime computing_time(const StepParts& parts, const ParallelPlan& plan) {
  SimTime sum;
  for (const StepPart part : {StepPart::Linear, StepPart::Attention, StepPart::MemoryBound,
                              StepPart::Casts, StepPart::Head, StepPart::Recompute}) {
    sum += parts[part];
  }
  const bool is_on_host = plan.offload.optimizer || plan.servers.has_value();
  return is_on_host ? sum : sum + parts[StepPart::Optimizer];
}

StepPower step_power(const CostTotals& totals) {
  return {.always = totals.watts - totals.gpu_watts + totals.gpu_idle_watts,
          .computing = totals.gpu_watts - totals.gpu_idle_watts};
}

StepCost step_cost(const ClusterCosts& costs, const ParallelPlan& plan, const StepTime& step) {
  const PartCosts& prices = costs.costs;
  const CostTotals& totals = costs.totals;
  const SimTime computes = computing_time(step.parts, plan);
  StepCost cost{
      .tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.sequence),
      .busy = computes / step.time};
  if (totals.watts > 0.0) {
    cost.joules = step_power(totals).joules(step.time, computes);
  }
  if (prices.years && totals.price > 0.0) {
    cost.capital = totals.price / (*prices.years * kSecondsOfYear) * step.time.seconds();
  }
  if (prices.kwh && cost.joules) {
    cost.energy = *prices.kwh * *cost.joules / kJoulesOfKwh;
  }
  return cost;
}

}  // namespace trainyard
