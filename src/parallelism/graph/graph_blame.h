// SPDX-License-Identifier: Apache-2.0
// Attributes the time of a run of an operation graph to its causes, with nothing left over.
//
// While a rank computes, its time is that of the computation; what traffic beside it made it longer
// is counted as that traffic. Where a rank computes nothing, the cause of its next computation is
// followed back: time of a call of its own is counted as that traffic, and so are messages wherever
// they are; time in which another rank computes, or talks to others, is a bubble, unless the rank
// itself is in a call at that time that nothing is meant to hide (GraphCall::slowdown_ppm is zero).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/operation_graph.h"
#include "parallelism/operators/step_parts.h"

namespace trainyard {

// Returns the parts of each rank in the graph, in the order of OperationGraph::present(); each adds
// up to `result.finish`. The run must have finished.
[[nodiscard]] std::vector<StepParts> blame_of(const OperationGraph& graph,
                                              const GraphResult& result,
                                              const GraphRunOptions& options = {});

// Returns the index of the parts of the rank that waits least for others, the first of equal ones.
[[nodiscard]] std::size_t busiest_of(std::span<const StepParts> ranks);

// `parts` cut or stretched to add up to `total`, in proportion; what rounding leaves goes to the
// largest.
[[nodiscard]] StepParts shared_out(const StepParts& parts, SimTime total);

}  // namespace trainyard
