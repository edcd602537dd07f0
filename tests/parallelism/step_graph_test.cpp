// SPDX-License-Identifier: Apache-2.0
// Graphs of steps against closed forms: equal to the picosecond where nothing runs beside anything,
// within stated bounds where something does.
#include "support/catch.h"

#include "parallelism/step_graph.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/random.h"
#include "support/effort.h"
#include "support/step_rates.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

struct GraphStepCase {
  Model model;
  ParallelPlan plan;
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  Overlap overlap = {};
  std::vector<int> servers = {};

  [[nodiscard]] StepJob job() {
    servers.clear();
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      servers.push_back(rank / 8);
    }
    return {.model = model,
            .plan = plan,
            .rates = rates,
            .software = software,
            .overlap = overlap,
            .server_of_rank = servers};
  }
  [[nodiscard]] StepTime closed(double rate = 100e9) {
    SteadyGroupTimes times(rate);
    return step_time(job(), times);
  }
  [[nodiscard]] StepGraphRun graph(Folding folding = Folding::Folded, double rate = 100e9) {
    SteadyGroupTimes times(rate);
    return run_step_graph(job(), times, folding);
  }
};

GraphStepCase case_of(const std::string& model, ParallelPlan plan, std::int64_t micro_batches = 8) {
  plan.global_batch = micro_batches * plan.micro_batch * plan.data;
  plan.sequence = 2048;
  GraphStepCase made{.model = load_model(kConfigsFolder / "workloads/models" / (model + ".yaml")),
                     .plan = plan};
  made.model.layers.resize(16);
  check(made.plan, made.model, plan.ranks());
  return made;
}

// Plans of every kind without ranks that share gradients, but for one stage of a pipeline.
std::vector<ParallelPlan> plans_without_windows() {
  return {{},
          {.tensor = 8, .has_sequence_parallelism = true},
          {.tensor = 4},
          {.tensor = 2, .context = 2, .data = 2},
          {.context = 4, .context_kind = ContextParallelism::AllToAll, .data = 2},
          {.tensor = 2, .data = 4, .zero_stage = 1},
          {.data = 8, .zero_stage = 2, .shard_group = 4, .recompute = Recompute::Full},
          {.tensor = 2, .context = 2, .data = 2, .zero_stage = 3},
          {.data = 8, .zero_stage = 3, .shard_group = 4, .recompute = Recompute::Selective},
          {.tensor = 2, .pipeline = 4, .schedule = PipelineSchedule::GPipe},
          {.tensor = 2, .has_sequence_parallelism = true, .pipeline = 4},
          {.tensor = 2, .pipeline = 4, .recompute = Recompute::Full},
          {.pipeline = 4, .schedule = PipelineSchedule::Interleaved, .chunks = 4},
          {.pipeline = 2, .schedule = PipelineSchedule::Interleaved, .chunks = 2},
          {.tensor = 2, .pipeline = 4, .schedule = PipelineSchedule::ZeroBubbleH1},
          {.pipeline = 4, .schedule = PipelineSchedule::ZeroBubbleH2},
          {.pipeline = 4, .schedule = PipelineSchedule::ZeroBubbleV, .chunks = 2},
          {.pipeline = 2, .schedule = PipelineSchedule::ZeroBubbleV, .chunks = 2},
          {.pipeline = 4, .schedule = PipelineSchedule::DualPipe, .chunks = 2}};
}

std::string name_of(const ParallelPlan& plan) {
  return std::string(to_string(plan.schedule)) + " tensor " + std::to_string(plan.tensor) +
         " context " + std::to_string(plan.context) + " pipeline " + std::to_string(plan.pipeline) +
         " data " + std::to_string(plan.data) + " zero " + std::to_string(plan.zero_stage);
}

}  // namespace

TEST_CASE("without overlap the graph takes what the closed forms say, to the picosecond",
          "[step_graph]") {
  for (const ParallelPlan& plan : plans_without_windows()) {
    for (const bool has_streams : {false, true}) {
      if (plan.schedule == PipelineSchedule::DualPipe && !has_streams) {
        continue;  // Two messages after a pair: the first is at its target before both are sent.
      }
      INFO(name_of(plan) << (has_streams ? ", transfers beside" : ""));
      GraphStepCase step = case_of("llama-3-8b", plan);
      step.overlap.pipeline = has_streams;
      const StepTime closed = step.closed();
      const StepGraphRun graph = step.graph();
      REQUIRE(graph.step.time == closed.time);
      REQUIRE(graph.step.parts.total() == graph.step.time);
      if (plan.pipeline == 1) {
        REQUIRE(graph.step.parts == closed.parts);
      }
    }
  }
}

TEST_CASE("experts without overlap take what the closed forms say", "[step_graph]") {
  const std::vector<ParallelPlan> plans{
      {.data = 8, .expert = 8},
      {.tensor = 2, .has_sequence_parallelism = true, .data = 4, .expert = 4},
      {.tensor = 2,
       .has_sequence_parallelism = true,
       .data = 4,
       .expert = 2,
       .expert_tensor = 2,
       .zero_stage = 1}};
  for (const ParallelPlan& plan : plans) {
    INFO(name_of(plan));
    GraphStepCase step = case_of("mixtral-8x7b", plan);
    const StepTime closed = step.closed();
    REQUIRE(step.graph().step.time == closed.time);
    REQUIRE(step.graph().step.parts == closed.parts);
  }
}

}  // namespace trainyard
