// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/search/plan_space.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/config_error.h"
#include "support/search_cases.h"

namespace trainyard {
namespace {

Workload gpt() {
  return load_workload(kConfigsFolder / "workloads" / "gpt-3-175b.yaml",
                       kConfigsFolder / "workloads" / "models");
}

}  // namespace

TEST_CASE("every combination is there once", "[plan-space]") {
  const Workload workload = gpt();
  const std::vector<ParallelPlan> plans =
      plans_of(default_axes(workload, 64, 8), workload.plan, 64);
  std::set<
      std::tuple<int, bool, int, std::string_view, int, int, std::int64_t, int, int, std::string>>
      seen;
  for (const ParallelPlan& plan : plans) {
    REQUIRE(plan.ranks() == 64);
    REQUIRE(plan.tensor <= 8);
    const bool is_new =
        seen.emplace(plan.tensor, plan.has_sequence_parallelism, plan.pipeline, plan.schedule->name,
                     plan.chunks, plan.data, plan.micro_batch, static_cast<int>(plan.recompute),
                     plan.zero_stage, order_letters(plan.order))
            .second;
    REQUIRE(is_new);
  }
  // By hand, for one tensor rank and no pipeline: 4 micro-batches, 3 kinds of recomputation and 4
  // stages, in one order, as data ranks are alone.
  const auto alone = std::count_if(plans.begin(), plans.end(), [](const ParallelPlan& plan) {
    return plan.tensor == 1 && plan.pipeline == 1;
  });
  REQUIRE(alone == 4 * 3 * 4);
  // With a pipeline of 8 and data ranks: 1F1B and five numbers of chunks, two orders.
  const auto piped = std::count_if(plans.begin(), plans.end(), [](const ParallelPlan& plan) {
    return plan.tensor == 1 && plan.pipeline == 8;
  });
  REQUIRE(piped == 4 * 3 * 4 * 6 * 2);
}

TEST_CASE("the workload's own plan is among those of the default", "[plan-space]") {
  for (const char* name : {"gpt-3-175b", "llama-3-405b", "mixtral-8x7b"}) {
    const Workload workload =
        load_workload(kConfigsFolder / "workloads" / (std::string(name) + ".yaml"),
                      kConfigsFolder / "workloads" / "models");
    const ParallelPlan own = plan_for(workload, 2048);
    const std::vector<ParallelPlan> plans =
        plans_of(default_axes(workload, 2048, 8), workload.plan, 2048);
    const auto found = std::count_if(plans.begin(), plans.end(), [&](const ParallelPlan& plan) {
      return plan.tensor == own.tensor &&
             plan.has_sequence_parallelism == own.has_sequence_parallelism &&
             plan.context == own.context && plan.pipeline == own.pipeline &&
             plan.schedule == own.schedule && plan.chunks == own.chunks &&
             plan.expert == own.expert && plan.micro_batch == own.micro_batch &&
             plan.recompute == own.recompute && plan.zero_stage == own.zero_stage &&
             plan.order == own.order;
    });
    INFO(name);
    REQUIRE(found == 1);
  }
}

TEST_CASE("axes of the workload give its plan alone", "[plan-space]") {
  const Workload workload = gpt();
  const std::vector<ParallelPlan> plans = plans_of(axes_of(workload), workload.plan, 256);
  REQUIRE(plans.size() == 1);
  REQUIRE(plans[0].tensor == 8);
  REQUIRE(plans[0].data == 2);
  REQUIRE(plans[0].chunks == 2);
  REQUIRE(plans_of(axes_of(workload), workload.plan, 100).empty());
}

TEST_CASE("layers of stages and shards stay with the plans that they fit", "[plan-space]") {
  Workload workload = gpt();
  workload.plan.pipeline = 2;
  workload.plan.chunks = 1;
  workload.plan.stage_layers = {40, 56};
  workload.plan.shard_group = 4;
  PlanAxes axes = axes_of(workload);
  axes.schedules = {&kOneForwardOneBackward};
  axes.pipeline = {1, 2, 4};
  axes.zero_stage = {0, 1};
  for (const ParallelPlan& plan : plans_of(axes, workload.plan, 64)) {
    REQUIRE(plan.stage_layers ==
            (plan.pipeline == 2 ? std::vector<int>{40, 56} : std::vector<int>{}));
    REQUIRE(plan.shard_group == (plan.zero_stage == 0 ? 0 : 4));
  }
}

TEST_CASE("compressed gradients are not sharded", "[plan-space]") {
  Workload workload = gpt();
  workload.plan.compression = GradientCompression{};
  const std::vector<ParallelPlan> plans =
      plans_of(default_axes(workload, 64, 8), workload.plan, 64);
  REQUIRE_FALSE(plans.empty());
  REQUIRE(std::ranges::all_of(plans, [](const ParallelPlan& plan) {
    return plan.zero_stage == 0 && plan.compression.has_value();
  }));
}

TEST_CASE("more plans than anybody waits for are refused", "[plan-space]") {
  const Workload workload = gpt();
  PlanAxes axes = default_axes(workload, 64, 8);
  for (int value = 3; value < 2000; ++value) {
    axes.micro_batch.push_back(value);
  }
  REQUIRE_THROWS_MATCHES(
      plans_of(axes, workload.plan, 64), ConfigError,
      Catch::Matchers::Message("search: expected at most 1000000 plans, found more: fix an axis or "
                               "give it fewer values"));
}

TEST_CASE("orders of ranks are four letters", "[plan-space]") {
  REQUIRE(order_letters(kMegatronOrder) == "tcdp");
  REQUIRE(order_of("tcdp") == kMegatronOrder);
  REQUIRE(order_letters(*order_of("pdct")) == "pdct");
  for (const char* letters : {"", "tcd", "tcdd", "tcdx", "tcdpt"}) {
    REQUIRE_FALSE(order_of(letters).has_value());
  }
}

}  // namespace trainyard
