// SPDX-License-Identifier: Apache-2.0
// The fastest plans of a list that fit the memory, by branch and bound: plans are timed in the
// order of a bound that no plan can undercut (plan_bound.h), and the search ends when the next
// bound is above the time of the last plan that is wanted. A plan that is not timed is proved to be
// slower.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/packet_parts/packet_team.h"
#include "parallelism/closed_forms/step_time.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/model/expert_routing.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/run/step_cost.h"
#include "parallelism/traffic/shared_times.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The inputs that do not change from plan to plan; all ranks of the servers take part.
struct SearchTask {
  const Model& model;
  const ComputeRates& rates;
  const SoftwareProfile& software;
  Overlap overlap = {};
  std::span<const int> server_of_rank;
  std::span<const int> domain_of_rank = {};
  ExpertLoads loads = {};
  std::optional<HostRates> host = {};        // For plans with offload.
  std::span<const ComputeRates> kinds = {};  // As those of StepJob.
  std::span<const int> kind_of_rank = {};
  Bytes memory;                    // Bytes that a plan may use on each GPU.
  const Cluster* hosts = nullptr;  // Cluster whose host memory it may use; nothing: any amount.
};

struct SearchOptions {
  std::size_t best = 10;  // How many plans are wanted.
  // Asks also for the plans that no other one beats in time, memory, network bytes and energy
  // together.
  bool wants_front = false;
  // Prunes by lower bounds; false: every plan that fits is timed.
  bool prunes = true;
  StepPower power = {};  // Power of the cluster; zero where energy does not matter.
  // Processes that share the plans out and have all results in the end; nothing: this one alone.
  PacketTeam* team = nullptr;
};

// Plans by what became of them; the numbers add up to all.
struct SearchCounts {
  std::size_t all = 0;
  std::map<std::string, std::size_t> invalid;  // Counts by the rule that they break.
  std::size_t out_of_memory = 0;
  // Fit, but their bound is above what is wanted, or their time with groups alone.
  std::size_t pruned = 0;
  std::size_t timed = 0;

  [[nodiscard]] std::size_t all_invalid() const;
};

struct TimedPlan {
  std::size_t index = 0;  // In the list.
  ParallelPlan plan;
  SimTime bound = {};
  StepTime step = {};
  MemoryUse memory = {};       // At its peak, on the rank that holds most.
  double network_bytes = 0.0;  // plan_network.h
  double joules = 0.0;
};

struct PlanSearch {
  SearchCounts counts;
  std::vector<TimedPlan> timed;  // The fastest first, of equal ones that of the lower index.
};

// Runs task(0) .. task(count - 1), in any order and on any threads.
using PlanTaskRunner =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)>;

// Runs the tasks of this process of a team, if there is one; put and get (packet_team.h) are about
// the result of a task.
template <typename Put, typename Get>
void run_shared(PacketTeam* team, std::size_t count, const PlanTaskRunner& run_tasks,
                const std::function<void(std::size_t)>& task, const Put& put, const Get& get) {
  if (team == nullptr) {
    run_tasks(count, task);
    return;
  }
  const std::size_t others = team->size() - 1 - team->rank();
  run_tasks((count + others) / team->size(),
            [&](std::size_t own) { task(team->rank() + own * team->size()); });
  share_items(*team, count, put, get);
}

// Bounds are with groups that are alone, steps with those of the plan beside each other, which
// never makes them shorter. The same result whatever the threads of `run_tasks`. A plan whose
// collectives cannot run counts as invalid.
[[nodiscard]] PlanSearch search_plans(const SearchTask& task, std::span<const ParallelPlan> plans,
                                      SharedTimes& times, const SearchOptions& options,
                                      const PlanTaskRunner& run_tasks);

// Returns whether the first takes at most as long, with at most as much memory, network and energy.
[[nodiscard]] bool is_no_worse(const TimedPlan& one, const TimedPlan& other);

// Returns the timed plans that no other one beats: is_no_worse(), and better in one of these; of
// equal ones the first. Indices into `timed`.
[[nodiscard]] std::vector<std::size_t> best_trades(std::span<const TimedPlan> timed);

// The rule of an error about a plan: its text without what was found, and with N for its numbers.
// Digits of words ("1f1b", "GPT-3") and of `name`, such as a model's, stay.
[[nodiscard]] std::string rule_of(const std::string& message, std::string_view name = "");

}  // namespace trainyard
