// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/step_cost.h"

#include "support/built_clusters.h"

namespace trainyard {
namespace {

// Ten seconds, four of them in products and one each in the optimizer and in waiting.
StepTime some_step() {
  StepTime step;
  step.parts[StepPart::Linear] = seconds(4);
  step.parts[StepPart::Optimizer] = seconds(1);
  step.parts[StepPart::Bubble] = seconds(5);
  step.time = step.parts.total();
  return step;
}

ParallelPlan some_plan() {
  ParallelPlan plan;
  plan.global_batch = 10;
  plan.sequence = 1000;
  return plan;
}

ClusterCosts some_cluster() {
  ClusterCosts costs;
  costs.totals = {.watts = 1100.0,
                  .idle_watts = 300.0,
                  .gpu_watts = 1000.0,
                  .gpu_idle_watts = 200.0,
                  .price = 365.25 * 86'400.0};
  return costs;
}

}  // namespace

TEST_CASE("GPUs draw their limit while they compute", "[step-cost]") {
  const StepPower power = step_power(some_cluster().totals);
  REQUIRE(power.joules(seconds(2), seconds(2)) == Approx(2200.0));
  REQUIRE(power.joules(seconds(2), SimTime()) == Approx(600.0));
  REQUIRE(power.joules(seconds(2), seconds(1)) == Approx(1400.0));
  const StepCost cost = step_cost(some_cluster(), some_plan(), some_step());
  REQUIRE(cost.busy == Approx(0.5));
  REQUIRE(cost.joules == Approx(7000.0));
  REQUIRE(cost.joules_of_token() == Approx(0.7));
  REQUIRE(cost.kwh_of_tokens(3.6e6) == Approx(0.7));
}

TEST_CASE("without its idle power a GPU draws its limit all the time", "[step-cost]") {
  PartCosts prices;
  prices.parts["H100-SXM"].watts = 700.0;
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const ClusterCosts costs = cluster_costs(cluster.topology, prices);
  REQUIRE(step_power(costs.totals).computing == 0.0);
  REQUIRE(step_cost(costs, some_plan(), some_step()).joules == Approx(10 * 8 * 700.0));
}

TEST_CASE("a step costs its time of the parts and its energy, as far as they are said",
          "[step-cost]") {
  ClusterCosts costs = some_cluster();
  StepCost cost = step_cost(costs, some_plan(), some_step());
  REQUIRE_FALSE(cost.price_of_tokens(1.0).has_value());
  costs.costs.years = 2.0;
  cost = step_cost(costs, some_plan(), some_step());
  REQUIRE(cost.capital == Approx(5.0));  // Half a unit of money a second.
  REQUIRE_FALSE(cost.energy.has_value());
  REQUIRE(cost.price_of_tokens(10'000.0) == Approx(5.0));
  costs.costs.kwh = 3.6;
  cost = step_cost(costs, some_plan(), some_step());
  REQUIRE(cost.energy == Approx(7000.0 * 1e-6));
  REQUIRE(cost.price_of_tokens(20'000.0) == Approx(2 * 5.007));
}

TEST_CASE("what nobody says is no value", "[step-cost]") {
  const StepCost cost = step_cost({}, some_plan(), some_step());
  REQUIRE_FALSE(cost.joules.has_value());
  REQUIRE_FALSE(cost.joules_of_token().has_value());
  REQUIRE_FALSE(cost.kwh_of_tokens(1.0).has_value());
  REQUIRE_FALSE(cost.price_of_tokens(1.0).has_value());
}

TEST_CASE("an optimizer on the host is no work of GPUs", "[step-cost]") {
  ParallelPlan plan = some_plan();
  REQUIRE(computing_time(some_step().parts, plan) == seconds(5));
  plan.offload.optimizer = true;
  REQUIRE(computing_time(some_step().parts, plan) == seconds(4));
  plan.offload = {};
  plan.servers = ParameterServers{};
  REQUIRE(computing_time(some_step().parts, plan) == seconds(4));
}

}  // namespace trainyard
