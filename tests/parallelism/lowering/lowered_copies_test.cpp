// SPDX-License-Identifier: Apache-2.0
// Plans with offload, closed forms and graphs.
#include "support/catch.h"

#include "parallelism/lowering/lowered_copies.h"
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <string>
#include <vector>

#include "parallelism/lowering/step_graph.h"
#include "parallelism/memory/offload.h"
#include "support/step_rates.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

HostRates host_at(std::int64_t gigabits) {
  return {.to_host = Bandwidth(gigabits * 1'000'000'000),
          .to_gpu = Bandwidth(gigabits * 1'000'000'000),
          .memory = Bandwidth(400'000'000'000),
          .latency = SimTime(1'000'000)};
}

struct OffloadCase {
  ParallelPlan plan;
  HostRates host = host_at(200);
  Overlap overlap = {};
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  std::vector<int> servers = {};

  [[nodiscard]] StepJob job() {
    plan.sequence = 2048;
    servers.assign(static_cast<std::size_t>(plan.ranks()), 0);
    check(plan, model, plan.ranks());
    return {.model = model,
            .plan = plan,
            .rates = rates,
            .software = software,
            .overlap = overlap,
            .server_of_rank = servers,
            .host = host};
  }
  [[nodiscard]] StepTime closed() {
    SteadyGroupTimes times(100e9);
    return step_time(job(), times);
  }
  [[nodiscard]] StepGraphRun graph(Folding folding = Folding::Folded) {
    SteadyGroupTimes times(100e9);
    return run_step_graph(job(), times, folding);
  }
};

std::vector<ParallelPlan> offloading_plans() {
  return {{.data = 4, .global_batch = 8},
          {.data = 4, .zero_stage = 1, .global_batch = 8},
          {.tensor = 2, .data = 4, .zero_stage = 2, .global_batch = 4},
          {.data = 4, .zero_stage = 3, .global_batch = 8},
          {.data = 4, .zero_stage = 2, .shard_group = 2, .global_batch = 8},
          {.tensor = 2, .pipeline = 4, .data = 2, .zero_stage = 1, .global_batch = 16},
          {.pipeline = 4, .schedule = &kGPipe, .data = 2, .global_batch = 16},
          {.pipeline = 4, .schedule = &kInterleaved, .chunks = 2, .data = 2, .global_batch = 16},
          {.pipeline = 4, .schedule = &kZeroBubbleH1, .global_batch = 8},
          {.pipeline = 4, .schedule = &kZeroBubbleV, .chunks = 2, .global_batch = 8},
          {.pipeline = 4, .schedule = &kDualPipe, .chunks = 2, .global_batch = 8}};
}

}  // namespace

TEST_CASE("an update on the host takes what the closed forms say, to the picosecond", "[offload]") {
  for (const ParallelPlan& plan : offloading_plans()) {
    if (plan.pipeline > 1) {
      continue;
    }
    INFO("ZeRO " << plan.zero_stage << ", shards " << plan.shards());
    OffloadCase step{.plan = plan};
    step.plan.offload.optimizer = true;
    const StepTime closed = step.closed();
    const std::int64_t owned = owned_parameters(
        stage_parameters(step.model, pipeline_stages(plan, step.model)[0], plan), plan);
    const HostUpdate update =
        host_update(host_tiles(owned, step.software.optimizer_bytes, 2, step.host));
    REQUIRE(closed.parts[StepPart::Optimizer] == update.optimizer);
    REQUIRE(closed.parts[StepPart::Offload] ==
            update.copies + step.host.copy_to_host(Bytes(owned) * step.software.gradient_bytes));
    const StepGraphRun graph = step.graph();
    REQUIRE(graph.step.time == closed.time);
    REQUIRE(graph.step.parts == closed.parts);
  }
}

TEST_CASE("gradients on the way to the host hide behind the backward pass", "[offload]") {
  OffloadCase step{.plan = {.data = 4, .zero_stage = 2, .global_batch = 8}, .host = host_at(1000)};
  step.plan.offload.optimizer = true;
  const StepTime exposed = step.closed();
  step.overlap.data = true;
  const StepTime closed = step.closed();
  REQUIRE(closed.parts[StepPart::Offload] < exposed.parts[StepPart::Offload]);
  REQUIRE(closed.parts[StepPart::Optimizer] == exposed.parts[StepPart::Optimizer]);
  // Of the gradients the last bucket of two hundred shows: 8.03e9 / 40e6.
  const std::int64_t owned = (parameters_of(step.model).total() + 3) / 4;
  const HostUpdate update =
      host_update(host_tiles(owned, step.software.optimizer_bytes, 2, step.host));
  REQUIRE(closed.parts[StepPart::Offload] - update.copies ==
          step.host.copy_to_host(Bytes(owned / 200) * step.software.gradient_bytes));
  const StepGraphRun graph = step.graph();
  REQUIRE(graph.step.time / closed.time == Approx(1.0).epsilon(0.02));
}

TEST_CASE("activations that take longer than their layers show", "[offload]") {
  OffloadCase step{
      .plan = {.data = 2, .global_batch = 8, .recompute = Recompute::Full, .offload = {}}};
  const StepTime usual = step.closed();
  const SimTime usual_graph = step.graph().step.time;
  step.plan.offload.activations = true;
  // 2 x 4096 x 2048 bytes for a layer: 0.67 ms at 200 Gb/s, where the layer takes longer; 67 ms at
  // 2 Gb/s. Half the rate adds as much again to 32 layers of four micro-batches, both ways.
  step.host = host_at(200);
  REQUIRE(step.closed().parts == usual.parts);
  REQUIRE(step.graph().step.time == usual_graph);
  step.host = host_at(2);
  const StepTime slow = step.closed();
  step.host = host_at(1);
  const StepTime slower = step.closed();
  const SimTime copy = step.host.copy_to_host(Bytes(2 * 4096 * 2048)) -
                       host_at(2).copy_to_host(Bytes(2 * 4096 * 2048));
  REQUIRE(slower.parts[StepPart::Offload] - slow.parts[StepPart::Offload] == copy * (32 * 4 * 2));
  REQUIRE(slower.parts[StepPart::Linear] == usual.parts[StepPart::Linear]);
  // In the graph copies of one micro-batch also hide behind the next one.
  const StepGraphRun graph = step.graph();
  REQUIRE(graph.step.parts.total() == graph.step.time);
  REQUIRE(graph.step.time <= slower.time);
  REQUIRE(graph.step.time / slower.time > 0.95);
}

TEST_CASE("graphs with offload are the same folded and whole, and end", "[offload]") {
  for (const ParallelPlan& plan : offloading_plans()) {
    for (const bool overlaps : {false, true}) {
      for (const std::int64_t gigabits : {5, 200}) {
        INFO(to_string(plan.schedule)
             << " ZeRO " << plan.zero_stage << ", " << plan.ranks() << " ranks, " << gigabits
             << " Gb/s" << (overlaps ? ", overlapped" : ""));
        OffloadCase step{.plan = plan, .host = host_at(gigabits)};
        step.plan.offload = {.optimizer = true, .activations = true};
        step.overlap = {.tensor = overlaps, .data = overlaps, .pipeline = overlaps};
        const StepGraphRun folded = step.graph();
        const StepGraphRun whole = step.graph(Folding::Unfolded);
        REQUIRE(folded.step.time == whole.step.time);
        REQUIRE(folded.step.parts == whole.step.parts);
        REQUIRE(folded.step.parts.total() == folded.step.time);
        const StepTime closed = step.closed();
        REQUIRE(closed.parts.total() == closed.time);
        step.plan.offload = {};
        REQUIRE(folded.step.time > step.graph().step.time);
      }
    }
  }
}

}  // namespace trainyard
