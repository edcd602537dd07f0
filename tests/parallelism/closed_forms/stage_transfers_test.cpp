// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/closed_forms/stage_transfers.h"
#include "parallelism/model/whole_backward_schedules.h"

#include <numeric>
#include <vector>

#include "parallelism/closed_forms/pipeline_timeline.h"
#include "parallelism/closed_forms/step_time.h"
#include "parallelism/lowering/step_graph.h"
#include "parallelism/traffic/cluster_times.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

struct StageTransferCase {
  Cluster cluster;
  ParallelPlan plan;
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  std::vector<int> servers = servers_of_gpus(cluster);

  StageTransferCase(Cluster made, ParallelPlan chosen) : cluster(std::move(made)), plan(chosen) {
    plan.global_batch = 8 * plan.data;
    plan.sequence = 2048;
    model.layers.resize(12);
    check(plan, model, static_cast<int>(cluster.gpus.size()));
  }
  [[nodiscard]] StepJob job() const {
    return {.model = model,
            .plan = plan,
            .rates = rates,
            .software = software,
            .overlap = {},
            .server_of_rank = servers};
  }
};

}  // namespace

TEST_CASE("stages of one server hand over faster than those of two", "[stage-transfers]") {
  const StageTransferCase step(shipped_cluster("dgx-h100", {.nodes = 2}),
                               {.tensor = 4, .pipeline = 4});
  ClusterTimes times(step.cluster, {}, Fidelity::Flow);
  const std::vector<SimTime> pairs = stage_transfers(step.job(), times);
  REQUIRE(pairs.size() == 8);
  const SimTime within = pairs[neighbour_index(0, 1, 4)];
  const SimTime across = pairs[neighbour_index(1, 2, 4)];
  REQUIRE(within > SimTime());
  REQUIRE(across > within);
  REQUIRE(pairs[neighbour_index(2, 3, 4)] == within);
  REQUIRE(pairs[neighbour_index(2, 1, 4)] == across);
  REQUIRE(pairs[neighbour_index(3, 0, 4)] == SimTime());  // Only chunks make a ring of them.
  StageTransferCase ring = step;
  ring.plan.schedule = &kInterleaved;
  ring.plan.chunks = 3;
  REQUIRE(stage_transfers(ring.job(), times)[neighbour_index(3, 0, 4)] == across);
  ring.plan.pipeline = 1;
  REQUIRE(stage_transfers(ring.job(), times) == std::vector<SimTime>(2));
}

// Two servers of a rack, and one behind the spines, where hashes put messages on the same links.
TEST_CASE("a pipeline over several racks pays for each of its hops, as the graph does",
          "[stage-transfers]") {
  const std::vector<StageTransferCase> steps{
      {shipped_cluster("meta-24k", {.nodes = 3}), {.tensor = 8, .pipeline = 3}},
      {shipped_cluster("dgx-h100", {.nodes = 2}), {.tensor = 4, .pipeline = 4}},
      {shipped_cluster("dgx-h100", {.nodes = 2}), {.tensor = 2, .pipeline = 8}}};
  for (const StageTransferCase& step : steps) {
    INFO(step.cluster.name << ", tensor " << step.plan.tensor);
    ClusterTimes times(step.cluster, {}, Fidelity::Flow);
    times.use_plan(step.plan);
    const StepTime closed = step_time(step.job(), times);
    REQUIRE(closed.parts[StepPart::Pipeline] > SimTime());
    REQUIRE(run_step_graph(step.job(), times, Folding::Folded).step.time == closed.time);
  }
}

}  // namespace trainyard
