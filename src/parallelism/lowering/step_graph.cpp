// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/step_graph.h"

#include <algorithm>
#include <cstddef>

#include "parallelism/graph/graph_blame.h"
#include "parallelism/model/rank_groups.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

// Adds the times of the passes of a rank, divided by the micro-batches.
void add_pass_times(const StepJob& job, int rank, StepGraphRun& run) {
  SimTime forward;
  SimTime backward;
  for (const LoweredPass& pass : run.lowered.passes) {
    if (pass.rank == rank) {
      const SimTime time =
          run.run.timings[pass.last.value()].end - run.run.timings[pass.first.value()].start;
      (pass.pass.kind == PassKind::Forward ? forward : backward) += time;
    }
  }
  const std::int64_t count = job.plan.micro_batches();
  run.step.forward = SimTime(forward.picoseconds() / count);
  run.step.backward = SimTime(backward.picoseconds() / count);
}

}  // namespace

StepGraphRun run_step_graph(const StepJob& job, Simulator& simulator, GraphTraffic& traffic,
                            Folding folding, const GraphRunOptions& options,
                            const ComputeJitter& jitter) {
  StepGraphRun run{.lowered = lower_step(job, folding), .run = {}, .ranks = {}, .step = {}};
  const OperationGraph& graph = run.lowered.graph;
  check(graph, "step");
  const GraphRunOptions applied = jitter.has_any() ? with_jitter(options, jitter, graph) : options;
  run.run = run_graph(simulator, graph, traffic, applied);
  check_finished(run.run, "step: expected a step that ends");
  run.ranks = blame_of(graph, run.run, applied);
  const std::size_t busiest = busiest_of(run.ranks);
  const int rank = graph.present()[busiest];
  const std::vector<int> pipeline = group_of(job.plan, RankGroupKind::Pipeline, rank);
  const auto place = std::find(pipeline.begin(), pipeline.end(), rank) - pipeline.begin();
  run.step.critical_rank = static_cast<int>(place);
  run.step.parts = run.ranks[busiest];
  complete(run.step, job.software.fixed, job.server_of_rank, jitter.has_any());
  add_pass_times(job, rank, run);
  return run;
}

StepGraphRun run_step_graph(const StepJob& job, GroupTimes& times, Folding folding,
                            const GraphRunOptions& options, const ComputeJitter& jitter) {
  Simulator simulator;
  TimedTraffic traffic(times);
  return run_step_graph(job, simulator, traffic, folding, options, jitter);
}

}  // namespace trainyard
