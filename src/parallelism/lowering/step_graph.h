// SPDX-License-Identifier: Apache-2.0
// The time of a training step from its operation graph, instead of from closed forms (step_time.h).
//
// The same operators, collectives and schedules; but buckets, prefetched weights and transfers wait
// for what they really wait for. What is not in the graph, the spread of ranks and what a step
// costs whatever its size, is added as step_time.h does; the spread not where the run has jitter of
// its own, which is for graphs that are not folded.
#pragma once

#include <vector>

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/graph_traffic.h"
#include "parallelism/lowering/graph_lowering.h"
#include "parallelism/traffic/group_times.h"
#include "sim/simulator.h"

namespace trainyard {

struct StepGraphRun {
  StepGraph lowered;
  GraphResult run;
  std::vector<StepParts> ranks;  // Parts by rank in the graph; without jitter and what is fixed.
  StepTime step;                 // The step of the rank that waits least for others.
};

// Every collective and message takes the time that it takes alone. Throws as step_time().
[[nodiscard]] StepGraphRun run_step_graph(const StepJob& job, GroupTimes& times, Folding folding,
                                          const GraphRunOptions& options = {},
                                          const ComputeJitter& jitter = {});

// The same with all ranks, on traffic that uses this simulator. Throws ConfigError if traffic does
// not end.
[[nodiscard]] StepGraphRun run_step_graph(const StepJob& job, Simulator& simulator,
                                          GraphTraffic& traffic, Folding folding,
                                          const GraphRunOptions& options = {},
                                          const ComputeJitter& jitter = {});

}  // namespace trainyard
