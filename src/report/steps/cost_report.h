// SPDX-License-Identifier: Apache-2.0
// Energy and cost of a step, as every command that has them prints them: the same keys, the same
// words for what is not known.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/run/step_cost.h"
#include "report/formats/table.h"
#include "topology/server/part_costs.h"

namespace trainyard {

// What a step costs, and of which cluster.
struct PricedStep {
  ClusterCosts cluster;
  StepCost step;
};

// "84.09", or no value.
[[nodiscard]] Cell cost_figure(const std::optional<double>& value, int decimals);
// "A B", for a cell of a line.
[[nodiscard]] std::string joined_names(const std::vector<std::string>& names);

// Keys and cells of a line: currency, names of the parts that are in no sum, energy of the step, of
// a token and of a million, price of tokens.
[[nodiscard]] std::vector<std::pair<std::string, Cell>> cost_cells(const PricedStep& priced);
// The same as a table of one row.
[[nodiscard]] Table cost_table(const PricedStep& priced);
// Two lines of text: energy and cost, each "unknown" with the reason where it is.
[[nodiscard]] std::string cost_text(const PricedStep& priced);
// What is in no sum, and what was taken at its limit.
[[nodiscard]] std::vector<std::string> cost_notes(const ClusterCosts& costs);

}  // namespace trainyard
