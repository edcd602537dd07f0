// SPDX-License-Identifier: Apache-2.0
// Runs an operation graph in simulated time and says what each rank did, and what it waited for.
//
// An operation is ready when nothing is left that it waits for. Computation then starts; a call or
// a rendezvous starts when all its members are ready, another message when its sender is.
// Computation and calls that slow each other down (GraphCall::slowdown_ppm) go at 1 / (1 + s) of
// their speed while both run on a rank, so that traffic T overlapped with computation W takes
// max(T, W) + s min(T, W) together; calls on a shared network are not slowed down by it.
//
// The use of a rank's time (graph_blame.h) follows from the causes that are kept: for each
// operation the one that it waited for last.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parallelism/graph/graph_compute.h"
#include "parallelism/graph/graph_timings.h"
#include "parallelism/graph/graph_traffic.h"
#include "parallelism/graph/operation_graph.h"
#include "sim/simulator.h"

namespace trainyard {

struct GraphResult {
  GraphTimings timings;  // Indexed by operation.
  SimTime finish;        // The last end.
  // Waits by stream, "rank 0, compute: a waits for rank 1, compute: b"; empty if everything ran.
  std::vector<std::string> waits;

  [[nodiscard]] bool finished() const { return waits.empty(); }
};

// Runs the simulator until nothing happens any more, from its present time on; `timings` count from
// there. `traffic` must run on the same simulator.
[[nodiscard]] GraphResult run_graph(Simulator& simulator, const OperationGraph& graph,
                                    GraphTraffic& traffic, const GraphRunOptions& options = {});

// Throws ConfigError, "step: expected a step that ends, found that ...", unless everything ran.
void check_finished(const GraphResult& result, std::string_view expected);

}  // namespace trainyard
