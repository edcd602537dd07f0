// SPDX-License-Identifier: Apache-2.0
// The bound of a plan against its time: never above it, and close where nothing is left out.
#include "support/catch.h"

#include "parallelism/model/pipeline_schedule.h"
#include "parallelism/search/plan_bound.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "support/effort.h"
#include "support/search_cases.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

StepJob job_of(const SearchCase& drawn, const ParallelPlan& plan) {
  return {.model = drawn.workload.model,
          .plan = plan,
          .rates = drawn.rates,
          .software = drawn.software,
          .overlap = drawn.overlap,
          .server_of_rank = drawn.server_of_rank};
}

bool runs(const SearchCase& drawn, const ParallelPlan& plan) {
  try {
    check(plan, drawn.workload.model, drawn.gpus());
    check_modelled(job_of(drawn, plan));
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("no plan undercuts its bound, with any schedule and traffic", "[plan-bound]") {
  std::set<std::string_view> schedules;
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    const SearchCase drawn = drawn_search(seed);
    SteadyGroupTimes times(drawn.traffic_rate);
    RandomStream random(seed, "plans");
    // A few of each schedule, so that the few seeds of a build with sanitizers meet them all.
    PlanAxes axes = drawn_axes(drawn, seed);
    axes.schedules.assign(pipeline_schedules().begin(), pipeline_schedules().end());
    std::map<std::string_view, std::vector<ParallelPlan>> plans;
    for (ParallelPlan& plan : plans_of(axes, drawn.workload.plan, drawn.gpus())) {
      plans[plan.schedule->name].push_back(std::move(plan));
    }
    for (std::size_t tries = 0; tries < 7 * plans.size(); ++tries) {
      const std::vector<ParallelPlan>& of_schedule =
          std::next(plans.begin(), static_cast<std::ptrdiff_t>(tries % plans.size()))->second;
      const ParallelPlan& plan = of_schedule[random.below(of_schedule.size())];
      if (!runs(drawn, plan)) {
        continue;
      }
      const StepJob job = job_of(drawn, plan);
      const SimTime bound = plan_bound(job, times);
      const SimTime time = step_time(job, times).time;
      INFO("seed " << seed << " tp " << plan.tensor << " pp " << plan.pipeline << " "
                   << to_string(plan.schedule) << " chunks " << plan.chunks << " of "
                   << plan.ranks());
      REQUIRE(bound <= time);
      REQUIRE(bound * 1000 > time);
      schedules.insert(plan.schedule->name);
    }
  }
  REQUIRE(schedules.size() == pipeline_schedules().size());
}

TEST_CASE("without transfers and gradients the bound of 1F1B is the step", "[plan-bound]") {
  SearchCase drawn = drawn_search(1);
  drawn.software.optimizer_bytes = 0.0;
  drawn.workload.model.vocabulary = 128;
  drawn.workload.model.has_tied_embeddings = false;
  drawn.workload.model.layers.assign(8, drawn.workload.model.layers.front());
  drawn.server_of_rank.assign(4, 0);
  ParallelPlan plan{.pipeline = 4, .global_batch = 8, .sequence = 1024};
  class NoTimes final : public GroupTimes {
   public:
    SimTime collective(Operation, const std::vector<int>&, Bytes) override { return {}; }
    SimTime transfer(int, int, Bytes) override { return {}; }
  } times;
  for (const auto& [schedule, chunks] : {std::pair(&kOneForwardOneBackward, 1),
                                         std::pair(&kGPipe, 1), std::pair(&kInterleaved, 2)}) {
    plan.schedule = schedule;
    plan.chunks = chunks;
    check(plan, drawn.workload.model, 4);
    const StepJob job = job_of(drawn, plan);
    INFO(to_string(schedule));
    REQUIRE(plan_bound(job, times) / step_time(job, times).time == Approx(1.0).epsilon(0.002));
  }
}

TEST_CASE("what the step refuses, its bound refuses", "[plan-bound]") {
  SearchCase drawn = drawn_search(2);
  drawn.rates.has_fused_attention = false;
  drawn.server_of_rank.assign(2, 0);
  const ParallelPlan plan{.context = 2, .global_batch = 8, .sequence = 1024};
  SteadyGroupTimes times;
  REQUIRE_THROWS_AS(plan_bound(job_of(drawn, plan), times), ConfigError);
}

}  // namespace trainyard
