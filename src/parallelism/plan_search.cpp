// SPDX-License-Identifier: Apache-2.0
#include "parallelism/plan_search.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "parallelism/plan_bound.h"
#include "parallelism/plan_network.h"
#include "parallelism/software_memory.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Plans of one task of the first pass, and of one round of the second: not the number of threads,
// so that the same plans are timed whatever that is.
constexpr std::size_t kPlansOfTask = 64;
constexpr std::size_t kPlansOfRound = 32;

// What the first pass says of a plan.
struct Assessment {
  std::string invalid = {};  // The rule that it breaks.
  bool fits = false;
  SimTime bound;
  MemoryUse memory = {};
  double network_bytes = 0.0;
};

StepJob job_of(const SearchTask& task, const ParallelPlan& plan) {
  return {.model = task.model,
          .plan = plan,
          .rates = task.rates,
          .software = task.software,
          .overlap = task.overlap,
          .server_of_rank = task.server_of_rank,
          .domain_of_rank = task.domain_of_rank,
          .loads = task.loads,
          .host = task.host};
}

Assessment assess(const SearchTask& task, const ParallelPlan& plan, GroupTimes& times) {
  Assessment result;
  try {
    check(plan, task.model, static_cast<int>(task.server_of_rank.size()));
    const StepJob job = job_of(task, plan);
    check_modelled(job);
    result.memory = step_memory(task.model, plan, task.software).highest().highest().use;
    result.fits = result.memory.device() <= task.memory;
    if (result.fits) {
      result.bound = plan_bound(job, times);
      result.network_bytes = network_bytes(task.model, plan, task.software, task.server_of_rank);
    }
  } catch (const ConfigError& error) {
    result.invalid = rule_of(error.what());
  }
  return result;
}

bool is_faster(const TimedPlan& a, const TimedPlan& b) {
  return a.step.time != b.step.time ? a.step.time < b.step.time : a.index < b.index;
}

class Searcher {
 public:
  Searcher(const SearchTask& task, std::span<const ParallelPlan> plans, GroupTimes& times,
           const SearchOptions& options, const PlanTaskRunner& run_tasks)
      : task_(task), plans_(plans), times_(times), options_(options), run_tasks_(run_tasks) {}

  PlanSearch run() {
    result_.counts.all = plans_.size();
    assess_all();
    std::vector<std::size_t> round;
    for (const std::size_t index : by_bound()) {
      if (!is_wanted(index)) {
        ++result_.counts.pruned;
        continue;
      }
      round.push_back(index);
      if (round.size() == kPlansOfRound) {
        time_all(round);
        round.clear();
      }
    }
    time_all(round);
    return std::move(result_);
  }

 private:
  void assess_all() {
    assessments_.resize(plans_.size());
    const std::size_t tasks = (plans_.size() + kPlansOfTask - 1) / kPlansOfTask;
    run_tasks_(tasks, [&](std::size_t part) {
      const std::size_t end = std::min(plans_.size(), (part + 1) * kPlansOfTask);
      for (std::size_t index = part * kPlansOfTask; index < end; ++index) {
        assessments_[index] = assess(task_, plans_[index], times_);
      }
    });
    for (const Assessment& each : assessments_) {
      if (!each.invalid.empty()) {
        ++result_.counts.invalid[each.invalid];
      } else if (!each.fits) {
        ++result_.counts.out_of_memory;
      }
    }
  }

  [[nodiscard]] std::vector<std::size_t> by_bound() const {
    std::vector<std::size_t> order;
    for (std::size_t index = 0; index < plans_.size(); ++index) {
      if (assessments_[index].invalid.empty() && assessments_[index].fits) {
        order.push_back(index);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return assessments_[a].bound < assessments_[b].bound;
    });
    return order;
  }

  // What is pruned once stays so: times only fall.
  [[nodiscard]] bool is_wanted(std::size_t index) const {
    const Assessment& plan = assessments_[index];
    const std::vector<TimedPlan>& timed = result_.timed;
    if (!options_.prunes || timed.size() < options_.best ||
        plan.bound <= timed[options_.best - 1].step.time) {
      return true;
    }
    return options_.wants_front &&
           std::none_of(timed.begin(), timed.end(), [&](const TimedPlan& other) {
             return other.step.time <= plan.bound &&
                    other.memory.device() <= plan.memory.device() &&
                    other.network_bytes <= plan.network_bytes &&
                    (other.step.time < plan.bound || other.index < index);
           });
  }

  void time_all(const std::vector<std::size_t>& round) {
    std::vector<std::optional<StepTime>> steps(round.size());
    std::vector<std::string> complaints(round.size());
    run_tasks_(round.size(), [&](std::size_t at) {
      try {
        steps[at] = step_time(job_of(task_, plans_[round[at]]), times_);
      } catch (const ConfigError& error) {
        complaints[at] = rule_of(error.what());
      }
    });
    std::vector<TimedPlan>& timed = result_.timed;
    for (std::size_t at = 0; at < round.size(); ++at) {
      if (!steps[at]) {
        ++result_.counts.invalid[complaints[at]];
        continue;
      }
      const Assessment& known = assessments_[round[at]];
      timed.push_back({.index = round[at],
                       .plan = plans_[round[at]],
                       .bound = known.bound,
                       .step = *steps[at],
                       .memory = known.memory,
                       .network_bytes = known.network_bytes});
    }
    std::sort(timed.begin(), timed.end(), is_faster);
    result_.counts.timed = timed.size();
  }

  const SearchTask& task_;
  std::span<const ParallelPlan> plans_;
  GroupTimes& times_;
  const SearchOptions& options_;
  const PlanTaskRunner& run_tasks_;
  std::vector<Assessment> assessments_;
  PlanSearch result_;
};

}  // namespace

std::size_t SearchCounts::all_invalid() const {
  return std::accumulate(invalid.begin(), invalid.end(), std::size_t{0},
                         [](std::size_t sum, const auto& rule) { return sum + rule.second; });
}

PlanSearch search_plans(const SearchTask& task, std::span<const ParallelPlan> plans,
                        GroupTimes& times, const SearchOptions& options,
                        const PlanTaskRunner& run_tasks) {
  return Searcher(task, plans, times, options, run_tasks).run();
}

std::vector<std::size_t> best_trades(std::span<const TimedPlan> timed) {
  std::vector<std::size_t> order(timed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto figures = [&](std::size_t index) {
    const TimedPlan& plan = timed[index];
    return std::make_tuple(plan.step.time, plan.memory.device(), plan.network_bytes, plan.index);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return figures(a) < figures(b); });
  std::vector<std::size_t> best;
  for (const std::size_t index : order) {
    // Whatever beats it comes before it, and is there or is beaten by one that is.
    const TimedPlan& plan = timed[index];
    const bool is_beaten = std::any_of(best.begin(), best.end(), [&](std::size_t other) {
      return timed[other].memory.device() <= plan.memory.device() &&
             timed[other].network_bytes <= plan.network_bytes;
    });
    if (!is_beaten) {
      best.push_back(index);
    }
  }
  std::sort(best.begin(), best.end());
  return best;
}

std::string rule_of(const std::string& message) {
  std::string rule;
  for (const char letter : message.substr(0, message.find(", found"))) {
    if (std::isdigit(static_cast<unsigned char>(letter)) == 0) {
      rule += letter;
    } else if (rule.empty() || rule.back() != 'N') {
      rule += 'N';
    }
  }
  return rule;
}

}  // namespace trainyard
