// SPDX-License-Identifier: Apache-2.0
// The request that the command line of `trainyard search` makes. Everything that can be judged
// without the files is checked here.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/cost_options.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "parallelism/run/step_run.h"
#include "parallelism/search/plan_space.h"

namespace trainyard {

// Values that the command line gives to axes.
struct AxisChoices {
  PlanAxes given;                      // Empty where it gives none.
  std::vector<std::string> kept = {};  // Axes that stay as the workload has them.
};

struct SearchRequest {
  InputNames inputs;
  Runtime runtime = {};
  std::vector<int> gpus;  // Empty: those of the cluster.
  AxisChoices axes;
  std::size_t best = 10;
  bool wants_front = false;
  bool prunes = true;
  double memory_share = 1.0;  // The share of the GPU's memory that a plan may use.
  // The second look at the best plans, if any, and its settings.
  bool refines = false;
  StepMethod method = StepMethod::ClosedForms;
  unsigned threads = 0;
  ResultTarget result = {};
  std::optional<std::string> best_file;
  std::optional<CostRequest> costs = {};
  PacketTeam* team = nullptr;  // Processes that share the plans out, if there are several.
};

[[nodiscard]] Options search_options();

// `values` are those of search_options. Throws ConfigError.
[[nodiscard]] SearchRequest read_search_request(const OptionReader& reader);

// The axes of a search: what the command line says, what it keeps of the workload, and else the
// default.
[[nodiscard]] PlanAxes chosen_axes(const AxisChoices& choices, const Workload& workload, int gpus,
                                   int domain_gpus);

// "1,2,4" or "1..8", also mixed; at least one number, each once. Throws an error about --NAME.
[[nodiscard]] std::vector<int> parse_numbers(std::string_view name, const std::string& text,
                                             int min, int max);

}  // namespace trainyard
