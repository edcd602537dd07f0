// SPDX-License-Identifier: Apache-2.0
// Energy and cost of a step, as every command that has them prints them: the same keys, the same
// words for what is not known.
#pragma once

#include <string>
#include <vector>

#include "parallelism/run/step_cost.h"
#include "report/formats/document.h"
#include "topology/server/part_costs.h"

namespace trainyard {

// The costs of a step and of its cluster.
struct PricedStep {
  ClusterCosts cluster;
  StepCost step;
};

// Energy of a step, of a token and of a million, price of tokens, and the names of the parts that
// are in no sum. Energy and cost have a line in the text each, "unknown" with the reason where they
// are. In JSON the figures are in the object `group`.
[[nodiscard]] std::vector<Figure> cost_figures(const PricedStep& priced, const std::string& group);
// Returns notes on what is in no sum, and on what was taken at its limit.
[[nodiscard]] std::vector<std::string> cost_notes(const ClusterCosts& costs);

}  // namespace trainyard
