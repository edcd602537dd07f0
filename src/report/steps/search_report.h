// SPDX-License-Identifier: Apache-2.0
// The result of a search for plans as a document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallelism/search/plan_search.h"
#include "report/formats/document.h"
#include "topology/server/part_costs.h"

namespace trainyard {

struct FoundPlan {
  TimedPlan timed;
  std::optional<StepTime> refined = {};  // Timed by the method and fidelity that were asked for.
  bool is_best = false;                  // One of those that were wanted,
  bool is_trade = false;                 // or that no other one beats in everything.

  [[nodiscard]] const StepTime& step() const { return refined ? *refined : timed.step; }
};

// On one number of GPUs.
struct SearchOfSize {
  int gpus = 0;
  SearchCounts counts;
  std::vector<FoundPlan> plans;         // The fastest first.
  std::optional<FoundPlan> given = {};  // The workload's own plan, if it runs there.
  std::optional<ClusterCosts> costs = {};
};

struct SearchReport {
  std::string cluster = {};
  std::string workload;
  std::string model;
  std::string software;
  std::string precision;
  std::string runtime;
  std::string method;          // The method of the times: "closed forms".
  std::string refined_method;  // Empty where nothing was timed again.
  std::vector<SearchOfSize> sizes = {};
  double flops_of_token = 0.0;
  double peak = 0.0;       // The peak of a GPU in that precision; FLOP/s.
  Bytes memory_size = {};  // The memory of a GPU.
  std::vector<std::string> notes = {};
};

// The text has the plans, what the first one has over the second and over the workload's own, and
// what became of all; CSV has a line for each plan.
[[nodiscard]] Document document_of(const SearchReport& report);

}  // namespace trainyard
