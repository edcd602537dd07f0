// SPDX-License-Identifier: Apache-2.0
// Lists which plans a search looks at: a list of values for each axis, and all of their
// combinations that differ in more than the name.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/workload.h"

namespace trainyard {

using PlanOrder = std::array<PlanAxis, 4>;

// The data ranks follow from the GPUs.
struct PlanAxes {
  std::vector<int> tensor = {1};
  std::vector<bool> sequence_parallel = {false};  // Choices of plans with several tensor ranks.
  std::vector<int> context = {1};
  std::vector<int> pipeline = {1};
  std::vector<const PipelineSchedule*> schedules = {&kOneForwardOneBackward};
  std::vector<int> chunks = {1};  // Choices of schedules that may have any number of them.
  std::vector<int> expert = {1};
  std::vector<int> expert_tensor = {1};
  std::vector<std::int64_t> micro_batch = {1};
  std::vector<Recompute> recompute = {Recompute::None};
  std::vector<int> zero_stage = {0};
  std::vector<PlanOrder> orders = {kMegatronOrder};
};

// Adds a value of an axis, unless it is there.
template <typename Value>
void add_once(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    values.push_back(value);
  }
}

// The axes of the workload's own plan, each with the one value that it has there.
[[nodiscard]] PlanAxes axes_of(const Workload& workload);

// Returns the axes of a search where nothing else is said; docs/commands/search.md has the lists.
// `domain_gpus`: GPUs of an NVLink domain, over which tensor ranks are spread.
[[nodiscard]] PlanAxes default_axes(const Workload& workload, int gpus, int domain_gpus);

// Limit beyond which nobody waits for the combinations.
inline constexpr std::size_t kMaxPlans = 1'000'000;

// All combinations on so many GPUs, the last axis changing first. Left out are those whose ranks do
// not divide the GPUs, and those that would run as one before them: chunks and schedules without a
// pipeline, sharding over one rank, orders that differ in axes of one rank. All else is as in
// `given`. Not checked. Throws ConfigError above kMaxPlans.
[[nodiscard]] std::vector<ParallelPlan> plans_of(const PlanAxes& axes, const ParallelPlan& given,
                                                 int gpus);

// "tcdp" for tensor, context, data, pipeline.
[[nodiscard]] std::string order_letters(const PlanOrder& order);
[[nodiscard]] std::optional<PlanOrder> order_of(std::string_view letters);

}  // namespace trainyard
