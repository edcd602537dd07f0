// SPDX-License-Identifier: Apache-2.0
#include "parallelism/search/plan_search.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "parallelism/memory/host_memory.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/search/plan_bound.h"
#include "parallelism/traffic/plan_network.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Plans of one task of the first pass, and of one round of the second: not the number of threads,
// so that the same plans are timed whatever that is.
constexpr std::size_t kPlansOfTask = 64;
constexpr std::size_t kPlansOfRound = 32;

// The judgement of the first pass on a plan.
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
          .host = task.host,
          .kinds = task.kinds,
          .kind_of_rank = task.kind_of_rank};
}

Assessment assess(const SearchTask& task, const ParallelPlan& plan, GroupTimes& times) {
  Assessment result;
  try {
    check(plan, task.model, static_cast<int>(task.server_of_rank.size()));
    const StepJob job = job_of(task, plan);
    check_modelled(job);
    const StepMemory memory = step_memory(task.model, plan, task.software, task.loads);
    result.memory = memory.highest().highest().use;
    result.fits = result.memory.device() <= task.memory &&
                  (task.hosts == nullptr || !plan.offload.any() ||
                   host_memory_use(*task.hosts, plan, memory).fits());
    if (result.fits) {
      result.bound = plan_bound(job, times);
      result.network_bytes = network_bytes(task.model, plan, task.software, task.server_of_rank);
    }
  } catch (const ConfigError& error) {
    result.invalid = rule_of(error.what(), task.model.title);
  }
  return result;
}

void put(const Assessment& known, Parcel& parcel) {
  parcel.put_text(known.invalid);
  parcel.put(known.fits);
  parcel.put(known.bound);
  parcel.put(known.memory);
  parcel.put(known.network_bytes);
}

void get(Assessment& known, Parcel& parcel) {
  known.invalid = parcel.get_text();
  known.fits = parcel.get<bool>();
  known.bound = parcel.get<SimTime>();
  known.memory = parcel.get<MemoryUse>();
  known.network_bytes = parcel.get<double>();
}

bool is_faster(const TimedPlan& a, const TimedPlan& b) {
  return a.step.time != b.step.time ? a.step.time < b.step.time : a.index < b.index;
}

class Searcher {
 public:
  Searcher(const SearchTask& task, std::span<const ParallelPlan> plans, SharedTimes& times,
           const SearchOptions& options, const PlanTaskRunner& run_tasks)
      : task_(task), plans_(plans), times_(times), options_(options), run_tasks_(run_tasks) {}

  PlanSearch run() {
    result_.counts.all = plans_.size();
    assess_all();
    std::vector<std::size_t> round;
    for (const std::size_t index : by_bound()) {
      if (!is_wanted(index, assessments_[index].bound)) {
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
    const auto visit = [&](std::size_t part, const auto& what) {
      const std::size_t end = std::min(plans_.size(), (part + 1) * kPlansOfTask);
      for (std::size_t index = part * kPlansOfTask; index < end; ++index) {
        what(index);
      }
    };
    run_shared(
        options_.team, tasks, run_tasks_,
        [&](std::size_t part) {
          visit(part, [&](std::size_t index) {
            assessments_[index] = assess(task_, plans_[index], times_);
          });
        },
        [&](std::size_t part, Parcel& parcel) {
          visit(part, [&](std::size_t index) { put(assessments_[index], parcel); });
        },
        [&](std::size_t part, Parcel& parcel) {
          visit(part, [&](std::size_t index) { get(assessments_[index], parcel); });
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

  // A plan that takes at least so long. A plan that is pruned stays so: times only fall.
  [[nodiscard]] bool is_wanted(std::size_t index, SimTime min) const {
    const std::vector<TimedPlan>& timed = result_.timed;
    if (!options_.prunes || timed.size() < options_.best ||
        min <= timed[options_.best - 1].step.time) {
      return true;
    }
    if (!options_.wants_front) {
      return false;
    }
    const Assessment& known = assessments_[index];
    TimedPlan plan{.index = index, .plan = {}};
    plan.step.time = min;
    plan.memory = known.memory;
    plan.network_bytes = known.network_bytes;
    plan.joules = options_.power.joules(min, SimTime());
    return std::none_of(timed.begin(), timed.end(), [&](const TimedPlan& other) {
      return is_no_worse(other, plan) && (other.step.time < min || other.index < index);
    });
  }

  // Returns the times of some plans; nothing for one that cannot run, which is counted.
  template <typename Timer>
  std::vector<std::optional<StepTime>> times_of(const std::vector<std::size_t>& plans,
                                                const Timer& timer) {
    std::vector<std::optional<StepTime>> steps(plans.size());
    std::vector<std::string> complaints(plans.size());
    const auto time = [&](std::size_t at) {
      try {
        steps[at] = timer(job_of(task_, plans_[plans[at]]));
      } catch (const ConfigError& error) {
        complaints[at] = rule_of(error.what(), task_.model.title);
      }
    };
    run_shared(
        options_.team, plans.size(), run_tasks_, time,
        [&](std::size_t at, Parcel& parcel) {
          parcel.put_text(complaints[at]);
          parcel.put(steps[at].has_value());
          parcel.put(steps[at].value_or(StepTime()));
        },
        [&](std::size_t at, Parcel& parcel) {
          complaints[at] = parcel.get_text();
          const bool is_timed = parcel.get<bool>();
          const auto step = parcel.get<StepTime>();
          steps[at] = is_timed ? std::optional(step) : std::nullopt;
        });
    for (std::size_t at = 0; at < plans.size(); ++at) {
      if (!steps[at]) {
        ++result_.counts.invalid[complaints[at]];
      }
    }
    return steps;
  }

  // Returns the plans that are wanted even if they took as long as with groups alone. This time is
  // never longer, and other plans have asked for most of it before.
  [[nodiscard]] std::vector<std::size_t> wanted_alone(const std::vector<std::size_t>& plans) {
    if (!options_.prunes || result_.timed.size() < options_.best) {
      return plans;
    }
    const auto steps = times_of(plans, [&](const StepJob& job) { return step_time(job, times_); });
    std::vector<std::size_t> wanted;
    for (std::size_t at = 0; at < plans.size(); ++at) {
      if (steps[at] && is_wanted(plans[at], steps[at]->time)) {
        wanted.push_back(plans[at]);
      } else if (steps[at]) {
        ++result_.counts.pruned;
      }
    }
    return wanted;
  }

  void time_all(const std::vector<std::size_t>& round) {
    const std::vector<std::size_t> plans = wanted_alone(round);
    const auto steps = times_of(plans, [&](const StepJob& job) {
      StepTime step;
      times_.lend([&](GroupTimes& times) {
        times.use_plan(job.plan);
        step = step_time(job, times);
      });
      return step;
    });
    for (std::size_t at = 0; at < plans.size(); ++at) {
      if (!steps[at]) {
        continue;
      }
      const std::size_t index = plans[at];
      const StepTime& step = *steps[at];
      const Assessment& known = assessments_[index];
      result_.timed.push_back(
          {.index = index,
           .plan = plans_[index],
           .bound = known.bound,
           .step = step,
           .memory = known.memory,
           .network_bytes = known.network_bytes,
           .joules = options_.power.joules(step.time, computing_time(step.parts, plans_[index]))});
    }
    std::sort(result_.timed.begin(), result_.timed.end(), is_faster);
    result_.counts.timed = result_.timed.size();
  }

  const SearchTask& task_;
  std::span<const ParallelPlan> plans_;
  SharedTimes& times_;
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
                        SharedTimes& times, const SearchOptions& options,
                        const PlanTaskRunner& run_tasks) {
  return Searcher(task, plans, times, options, run_tasks).run();
}

bool is_no_worse(const TimedPlan& one, const TimedPlan& other) {
  return one.step.time <= other.step.time && one.memory.device() <= other.memory.device() &&
         one.network_bytes <= other.network_bytes && one.joules <= other.joules;
}

std::vector<std::size_t> best_trades(std::span<const TimedPlan> timed) {
  std::vector<std::size_t> order(timed.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto figures = [&](std::size_t index) {
    const TimedPlan& plan = timed[index];
    return std::make_tuple(plan.step.time, plan.memory.device(), plan.network_bytes, plan.joules,
                           plan.index);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return figures(a) < figures(b); });
  std::vector<std::size_t> best;
  for (const std::size_t index : order) {
    // Whatever beats it comes before it, and is there or is beaten by one that is.
    const bool is_beaten = std::any_of(best.begin(), best.end(), [&](std::size_t other) {
      return is_no_worse(timed[other], timed[index]);
    });
    if (!is_beaten) {
      best.push_back(index);
    }
  }
  std::sort(best.begin(), best.end());
  return best;
}

std::string rule_of(const std::string& message, std::string_view name) {
  const std::string_view text = std::string_view(message).substr(0, message.find(", found"));
  const auto is_digit = [&](std::size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  const auto is_word = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  std::string rule;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (!name.empty() && text.substr(at).starts_with(name)) {
      end = at + name.size();
    } else if (is_digit(at)) {
      while (is_digit(end)) {
        ++end;
      }
      const bool begins_word =
          at == 0 || !(is_word(at - 1) || (text[at - 1] == '-' && at > 1 && is_word(at - 2)));
      if (begins_word && !is_word(end)) {
        rule += 'N';
        at = end;
        continue;
      }
    }
    rule += text.substr(at, end - at);
    at = end;
  }
  return rule;
}

}  // namespace trainyard
