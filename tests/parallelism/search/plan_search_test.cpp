// SPDX-License-Identifier: Apache-2.0
// Searches against the timing of every plan.
#include "support/catch.h"

#include "parallelism/search/plan_search.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "parallelism/memory/step_memory.h"
#include "parallelism/run/step_cost.h"
#include "parallelism/traffic/cluster_times.h"
#include "parallelism/traffic/shared_times.h"
#include "sim/config_error.h"
#include "sim/random.h"
#include "support/built_clusters.h"
#include "support/effort.h"
#include "support/search_cases.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

struct TestSearch {
  SearchCase drawn;
  std::vector<ParallelPlan> plans;

  explicit TestSearch(std::uint64_t seed)
      : drawn(drawn_search(seed)),
        plans(plans_of(drawn_axes(drawn, seed), drawn.workload.plan, drawn.gpus())) {}

  [[nodiscard]] PlanSearch run(const SearchOptions& options,
                               const PlanTaskRunner& runner = run_serially) const {
    SharedTimes times([&] { return std::make_unique<SteadyGroupTimes>(drawn.traffic_rate); });
    return search_plans(drawn.task(), plans, times, options, runner);
  }
};

void require_same(const TimedPlan& a, const TimedPlan& b) {
  REQUIRE(a.index == b.index);
  REQUIRE(a.step.time == b.step.time);
  REQUIRE(a.step.parts == b.step.parts);
  REQUIRE(a.bound == b.bound);
  REQUIRE(a.memory.by_class == b.memory.by_class);
}

// Groups of a plan take from each other: each call takes one to four times as long, by chance.
class DividedTimes final : public GroupTimes {
 public:
  DividedTimes(double rate, std::uint64_t seed) : alone_(rate), seed_(seed) {}

  void use_plan(const ParallelPlan& plan) override {
    plan_ = hash64(seed_ ^ hash64(static_cast<std::uint64_t>(plan.tensor + 100 * plan.pipeline +
                                                             10'000 * plan.context)));
  }

  [[nodiscard]] SimTime collective(Operation operation, const std::vector<int>& ranks,
                                   Bytes size) override {
    const auto group = static_cast<std::uint64_t>(operation) * 1000 + ranks.size();
    return alone_.collective(operation, ranks, size) * factor(group);
  }
  [[nodiscard]] SimTime transfer(int from, int to, Bytes size) override {
    return alone_.transfer(from, to, size) * factor(77);
  }

 private:
  [[nodiscard]] std::int64_t factor(std::uint64_t group) const {
    return plan_ ? 1 + static_cast<std::int64_t>(hash64(*plan_ ^ group) % 4) : 1;
  }

  SteadyGroupTimes alone_;
  std::uint64_t seed_;
  std::optional<std::uint64_t> plan_ = {};
};

// Of a cluster whose groups are alone, whatever the plan.
class LonelyTimes final : public GroupTimes {
 public:
  explicit LonelyTimes(const Cluster& cluster)
      : alone_(cluster, std::nullopt, Fidelity::Analytical) {}

  [[nodiscard]] SimTime collective(Operation operation, const std::vector<int>& ranks,
                                   Bytes size) override {
    return alone_.collective(operation, ranks, size);
  }
  [[nodiscard]] SimTime transfer(int from, int to, Bytes size) override {
    return alone_.transfer(from, to, size);
  }

 private:
  ClusterTimes alone_;
};

SimTime time_of(const PlanSearch& search, std::size_t index) {
  const auto found = std::find_if(search.timed.begin(), search.timed.end(),
                                  [&](const TimedPlan& plan) { return plan.index == index; });
  REQUIRE(found != search.timed.end());
  return found->step.time;
}

// What the pruning by times of groups alone rests on.
void require_no_faster(const PlanSearch& beside, const PlanSearch& alone) {
  for (const TimedPlan& plan : beside.timed) {
    INFO("plan " << plan.index);
    REQUIRE(plan.step.time >= time_of(alone, plan.index));
    REQUIRE(plan.bound <= plan.step.time);
  }
}

// The last tasks first, on two threads.
void run_backwards(std::size_t count, const std::function<void(std::size_t)>& task) {
  const auto every_second = [&](std::size_t first) {
    for (std::size_t index = first; index < count; index += 2) {
      task(count - 1 - index);
    }
  };
  const std::jthread other([&] { every_second(1); });
  every_second(0);
}

}  // namespace

TEST_CASE("a search finds what timing every plan finds", "[plan-search]") {
  std::size_t fitting = 0;
  std::size_t pruned = 0;
  for (std::uint64_t seed = 0; seed < cases(50); ++seed) {
    INFO("seed " << seed);
    const TestSearch search(seed);
    const PlanSearch all = search.run({.best = 1, .prunes = false});
    REQUIRE(all.counts.pruned == 0);
    for (const std::size_t best : {std::size_t{1}, std::size_t{5}}) {
      const PlanSearch found = search.run({.best = best});
      REQUIRE(found.counts.all == search.plans.size());
      REQUIRE(found.counts.all_invalid() + found.counts.out_of_memory + found.counts.pruned +
                  found.counts.timed ==
              found.counts.all);
      REQUIRE(found.counts.out_of_memory == all.counts.out_of_memory);
      REQUIRE(found.counts.invalid == all.counts.invalid);
      REQUIRE(found.timed.size() >= std::min(best, all.timed.size()));
      for (std::size_t place = 0; place < std::min(best, all.timed.size()); ++place) {
        require_same(found.timed[place], all.timed[place]);
      }
      if (best == 1) {
        fitting += all.timed.size();
        pruned += found.counts.pruned;
      }
    }
  }
  REQUIRE(fitting > cases(50) * 100);
  REQUIRE(pruned * 2 > fitting);
}

TEST_CASE("a search takes the memory of plans with what routing fills most", "[plan-search]") {
  TestSearch search(0);
  SearchTask task = search.drawn.task();
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "mixtral-8x7b.yaml");
  const int gpus = search.drawn.gpus();
  const std::vector<ParallelPlan> plans{
      {.data = gpus, .expert = 2, .zero_stage = 3, .global_batch = gpus, .sequence = 4096}};
  SearchTask skewed{.model = model,
                    .rates = task.rates,
                    .software = task.software,
                    .server_of_rank = task.server_of_rank,
                    .loads = {.imbalance = 1.75},
                    .memory = gib(10'000)};
  SharedTimes times([&] { return std::make_unique<SteadyGroupTimes>(search.drawn.traffic_rate); });
  const PlanSearch found = search_plans(skewed, plans, times, {.best = 1}, run_serially);
  REQUIRE(found.timed.size() == 1);
  const auto use = [&](const ExpertLoads& loads) {
    return step_memory(model, plans[0], task.software, loads).highest().highest().use.by_class;
  };
  REQUIRE(found.timed[0].memory.by_class == use(skewed.loads));
  REQUIRE(use(skewed.loads) != use({}));
}

TEST_CASE("trades of time, memory and network are those of all plans", "[plan-search]") {
  for (std::uint64_t seed = 0; seed < cases(10); ++seed) {
    INFO("seed " << seed);
    const TestSearch search(seed);
    const PlanSearch all = search.run({.best = 1, .prunes = false});
    const PlanSearch found = search.run({.best = 1, .wants_front = true});
    const std::vector<std::size_t> expected = best_trades(all.timed);
    const std::vector<std::size_t> trades = best_trades(found.timed);
    REQUIRE(trades.size() == expected.size());
    for (std::size_t index = 0; index < trades.size(); ++index) {
      require_same(found.timed[trades[index]], all.timed[expected[index]]);
    }
    // By its definition.
    for (const TimedPlan& plan : all.timed) {
      const bool is_beaten =
          std::any_of(all.timed.begin(), all.timed.end(), [&](const TimedPlan& other) {
            const bool is_no_worse = other.step.time <= plan.step.time &&
                                     other.memory.device() <= plan.memory.device() &&
                                     other.network_bytes <= plan.network_bytes;
            const bool is_better = other.step.time < plan.step.time ||
                                   other.memory.device() < plan.memory.device() ||
                                   other.network_bytes < plan.network_bytes;
            return is_no_worse && (is_better || other.index < plan.index);
          });
      const bool is_trade = std::any_of(expected.begin(), expected.end(), [&](std::size_t at) {
        return all.timed[at].index == plan.index;
      });
      REQUIRE(is_trade != is_beaten);
    }
  }
}

TEST_CASE("with what groups take from each other a search finds what timing every plan finds",
          "[plan-search]") {
  std::size_t pruned = 0;
  std::size_t other = 0;
  for (std::uint64_t seed = 0; seed < cases(50); ++seed) {
    INFO("seed " << seed);
    const TestSearch search(seed);
    const PlanSearch alone = search.run({.best = 1, .prunes = false});
    const auto run = [&](const SearchOptions& options) {
      SharedTimes times(
          [&] { return std::make_unique<DividedTimes>(search.drawn.traffic_rate, seed); });
      return search_plans(search.drawn.task(), search.plans, times, options, run_serially);
    };
    const PlanSearch all = run({.best = 1, .prunes = false});
    REQUIRE(all.timed.size() == alone.timed.size());
    require_no_faster(all, alone);
    const PlanSearch found = run({.best = 3});
    REQUIRE(found.counts.all_invalid() + found.counts.out_of_memory + found.counts.pruned +
                found.counts.timed ==
            found.counts.all);
    for (std::size_t place = 0; place < std::min<std::size_t>(3, all.timed.size()); ++place) {
      require_same(found.timed[place], all.timed[place]);
    }
    pruned += found.counts.pruned;
    const bool has_any = !all.timed.empty();
    other += has_any && all.timed.front().index != alone.timed.front().index ? 1 : 0;
  }
  REQUIRE(pruned > cases(50) * 50);
  REQUIRE(other > 0);  // Winners that are none with groups alone.
}

TEST_CASE("on an oversubscribed fabric a search finds what timing every plan finds",
          "[plan-search][long]") {
  const Cluster cluster = shipped_cluster(
      "hgx-h100-clos", {.nodes = 4,
                        .gpus_per_node = 2,
                        .settings = {"fabric.nodes_per_leaf=2", "fabric.oversubscription=4"}});
  std::size_t searches = 0;
  std::size_t shared = 0;
  for (std::uint64_t seed = 0; seed < cases(50); ++seed) {
    INFO("seed " << seed);
    TestSearch search(seed);
    if (search.drawn.gpus() != static_cast<int>(cluster.gpus.size())) {
      continue;
    }
    search.drawn.server_of_rank = servers_of_gpus(cluster);
    const auto run = [&](bool prunes, bool is_alone) {
      SharedTimes times([&]() -> std::unique_ptr<GroupTimes> {
        if (is_alone) {
          return std::make_unique<LonelyTimes>(cluster);
        }
        return std::make_unique<ClusterTimes>(cluster, std::nullopt, Fidelity::Analytical);
      });
      return search_plans(search.drawn.task(), search.plans, times, {.best = 2, .prunes = prunes},
                          run_serially);
    };
    const PlanSearch all = run(false, false);
    const PlanSearch alone = run(false, true);
    require_no_faster(all, alone);
    const PlanSearch found = run(true, false);
    for (std::size_t place = 0; place < std::min<std::size_t>(2, all.timed.size()); ++place) {
      require_same(found.timed[place], all.timed[place]);
    }
    for (const TimedPlan& plan : all.timed) {
      shared += plan.step.time > time_of(alone, plan.index) ? 1 : 0;
    }
    ++searches;
  }
  REQUIRE(searches >= cases(50) / 4);
  REQUIRE(shared > searches);
}

TEST_CASE("energy is a figure of trades", "[plan-search]") {
  for (std::uint64_t seed = 0; seed < cases(10); ++seed) {
    INFO("seed " << seed);
    const TestSearch search(seed);
    const StepPower power{.always = 100.0, .computing = 700.0};
    const PlanSearch all = search.run({.best = 1, .prunes = false, .power = power});
    const PlanSearch found = search.run({.best = 1, .wants_front = true, .power = power});
    const std::vector<std::size_t> expected = best_trades(all.timed);
    const std::vector<std::size_t> trades = best_trades(found.timed);
    REQUIRE(trades.size() == expected.size());
    for (std::size_t index = 0; index < trades.size(); ++index) {
      require_same(found.timed[trades[index]], all.timed[expected[index]]);
    }
    for (const TimedPlan& plan : all.timed) {
      REQUIRE(plan.joules ==
              power.joules(plan.step.time, computing_time(plan.step.parts, plan.plan)));
    }
  }
}

TEST_CASE("threads change nothing", "[plan-search]") {
  for (std::uint64_t seed = 0; seed < cases(5); ++seed) {
    const TestSearch search(seed);
    const PlanSearch one = search.run({.best = 3});
    const PlanSearch two = search.run({.best = 3}, run_backwards);
    REQUIRE(one.counts.timed == two.counts.timed);
    REQUIRE(one.timed.size() == two.timed.size());
    for (std::size_t place = 0; place < one.timed.size(); ++place) {
      require_same(one.timed[place], two.timed[place]);
    }
  }
}

TEST_CASE("plans whose traffic cannot run are invalid", "[plan-search]") {
  class Refusing final : public GroupTimes {
   public:
    SimTime collective(Operation, const std::vector<int>&, Bytes) override {
      throw ConfigError("step: expected a way from 3 to 5, found none");
    }
    SimTime transfer(int, int, Bytes) override { return {}; }
  };
  const TestSearch search(3);
  SharedTimes times([] { return std::make_unique<Refusing>(); });
  const PlanSearch found = search_plans(search.drawn.task(), search.plans, times,
                                        {.best = 1000, .prunes = false}, run_serially);
  REQUIRE(found.counts.invalid.at("step: expected a way from N to N") > 0);
  REQUIRE(found.counts.all_invalid() + found.counts.out_of_memory + found.counts.timed ==
          found.counts.all);
}

TEST_CASE("a rule is an error without its numbers", "[plan-search]") {
  REQUIRE(rule_of("plan: expected tensor to divide the heads, found 3 and 16") ==
          "plan: expected tensor to divide the heads");
  REQUIRE(rule_of("schedule interleaved: expected micro-batches that 16 ranks divide, found 24") ==
          "schedule interleaved: expected micro-batches that N ranks divide");
  REQUIRE(rule_of("expected expert of 1, as Llama 3 8B has no experts, found 2", "Llama 3 8B") ==
          "expected expert of N, as Llama 3 8B has no experts");
  REQUIRE(rule_of("GPT-3: expected 1f1b or zb-h1 with 12 chunks of 96, found 5") ==
          "GPT-3: expected 1f1b or zb-h1 with N chunks of N");
}

}  // namespace trainyard
