// SPDX-License-Identifier: Apache-2.0
// Several jobs at the same time, each of which repeats its step: what they take from each other.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/graph_traffic.h"
#include "parallelism/graph/operation_graph.h"
#include "sim/simulator.h"
#include "sim/units.h"

namespace trainyard {

struct GraphJob {
  std::string name;  // For errors.
  const OperationGraph& graph;
  GraphTraffic& traffic;
  GraphRunOptions options = {};
};

// Returns for each job the times of its steps, one after the other: at least `steps` of each, which
// is 1 or more. Every job goes on until all have done as many; what is still running then is not
// counted, as it does not have all the others beside it to its end.
//
// All begin at once. Throws ConfigError if a step does not end.
[[nodiscard]] std::vector<std::vector<SimTime>> run_together(Simulator& simulator,
                                                             std::span<const GraphJob> jobs,
                                                             int steps);

}  // namespace trainyard
