// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/closed_forms/pipeline_timeline.h"
#include "parallelism/lowering/step_graph.h"
#include "parallelism/model/expert_routing.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/traffic/cluster_times.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

struct TestStep {
  Model model;
  ParallelPlan plan;
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  Overlap overlap = {};
  int ranks_of_server = 8;
  ExpertLoads loads = {};

  [[nodiscard]] StepTime run(GroupTimes& times) const {
    std::vector<int> servers;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      servers.push_back(rank / ranks_of_server);
    }
    return step_time({.model = model,
                      .plan = plan,
                      .rates = rates,
                      .software = software,
                      .overlap = overlap,
                      .server_of_rank = servers,
                      .loads = loads},
                     times);
  }
  [[nodiscard]] StepTime run() const {
    SteadyGroupTimes times(100e9);
    return run(times);
  }
};

Model shipped_model(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

TestStep llama(ParallelPlan plan) {
  plan.global_batch = 8 * plan.micro_batch * plan.data;
  plan.sequence = 4096;
  TestStep step{.model = shipped_model("llama-3-8b"), .plan = plan};
  check(plan, step.model, plan.ranks());
  return step;
}

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

// Qwen of 2023, of the shapes in its config.json, but for the biases.
Model qwen(std::int64_t hidden, int layers, std::int64_t inner, std::int64_t vocabulary) {
  const std::int64_t heads = hidden / 128;
  const ModelLayer layer{
      .attention = {.grouped =
                        GroupedAttention{.heads = heads, .kv_heads = heads, .head_size = 128}},
      .feed_forward = FeedForward{.size = inner, .is_gated = true}};
  Model model;
  model.hidden = hidden;
  model.vocabulary = vocabulary;
  model.layers.assign(static_cast<std::size_t>(layers), layer);
  model.adapters = Adapters{.rank = 64};
  return model;
}

// Returns the seconds of a step on one A100 with 8 sequences one by one.
double fine_tuned(const Model& model, std::int64_t sequence) {
  TestStep step{.model = model,
                .plan = {.global_batch = 8, .sequence = sequence, .recompute = Recompute::Full},
                .rates = shipped_compute("A100-SXM-80GB", "pytorch-native"),
                .software = shipped_software("pytorch-native")};
  check(step.plan, step.model, 1);
  return step.run().time.seconds();
}

}  // namespace

TEST_CASE("the parts of a step add up to it, for every kind of plan", "[step]") {
  std::vector<ParallelPlan> plans{
      {},
      {.tensor = 8, .has_sequence_parallelism = true},
      {.context = 4, .context_kind = ContextParallelism::AllToAll},
      {.tensor = 2, .context = 2, .data = 2, .zero_stage = 3},
      {.tensor = 2, .pipeline = 4, .data = 4},
      {.pipeline = 4, .schedule = &kInterleaved, .chunks = 4, .data = 2, .zero_stage = 1},
      {.data = 8, .zero_stage = 2, .shard_group = 4, .recompute = Recompute::Full},
      {.data = 8, .zero_stage = 3, .shard_group = 4, .recompute = Recompute::Selective}};
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    plans.push_back({.pipeline = 4, .schedule = schedule, .chunks = schedule->chunks.value_or(2)});
  }
  for (const ParallelPlan& plan : plans) {
    for (const bool overlaps : {false, true}) {
      INFO(to_string(plan.schedule) << " " << plan.ranks() << " ranks");
      TestStep step = llama(plan);
      step.overlap = {.tensor = overlaps, .data = overlaps, .pipeline = overlaps};
      const StepTime result = step.run();
      REQUIRE(result.parts.total() == result.time);
      for (const SimTime part : result.parts.times) {
        REQUIRE(part >= SimTime());
      }
      REQUIRE(step.run().parts == result.parts);
    }
  }
}

TEST_CASE("one GPU does nothing but compute, for every micro-batch alike", "[step]") {
  TestStep step = llama({});
  SteadyGroupTimes times;
  const StepTime result = step.run(times);
  REQUIRE(times.collectives + times.transfers == 0);
  REQUIRE(result.parts[StepPart::Bubble] == SimTime());
  const SimTime passes = (result.forward + result.backward) * 8;
  REQUIRE(result.time == passes + result.parts[StepPart::Optimizer] + milliseconds(20));
  step.plan.global_batch *= 2;
  const StepTime twice = step.run();
  REQUIRE(twice.time - result.time == passes);
}

TEST_CASE("equal stages wait (p - 1) / m of what they compute", "[step]") {
  TestStep step = llama({.pipeline = 4});
  step.model.vocabulary = 16;  // Ends of next to nothing.
  const StepTime result = step.run();
  const double computed = (result.forward + result.backward).seconds() * 8.0;
  REQUIRE(result.parts[StepPart::Bubble].seconds() == Approx(computed * 3.0 / 8.0).epsilon(0.02));
}

TEST_CASE("traffic that runs overlapped with computation shows in part", "[step]") {
  TestStep step = llama({.tensor = 8, .has_sequence_parallelism = true, .data = 2});
  const StepTime exposed = step.run();
  step.overlap = {.tensor = true, .data = true};
  const StepTime hidden = step.run();
  REQUIRE(hidden.parts[StepPart::Tensor] / exposed.parts[StepPart::Tensor] ==
          Approx(step.rates.overlapped_tensor).epsilon(0.05));
  REQUIRE(hidden.parts[StepPart::Data] / exposed.parts[StepPart::Data] ==
          Approx(step.rates.overlapped_data).epsilon(0.05));
  REQUIRE(hidden.parts[StepPart::Linear] == exposed.parts[StepPart::Linear]);
}

TEST_CASE("traffic longer than its window shows whole beyond it", "[step]") {
  TestStep step = llama({.data = 2});
  step.overlap.data = true;
  SteadyGroupTimes slow(1e7);
  const StepTime result = step.run(slow);
  const SimTime traffic =
      slow.collective(Operation::AllReduce, {0, 1}, Bytes(parameters_of(step.model).total()) * 2);
  const double window = result.backward.seconds();
  REQUIRE(result.parts[StepPart::Data].seconds() ==
          Approx(traffic.seconds() - window + step.rates.overlapped_data * window));
}

TEST_CASE("recomputing costs the forward passes again", "[step]") {
  TestStep step = llama({.tensor = 2});
  const StepTime none = step.run();
  step.plan.recompute = Recompute::Selective;
  REQUIRE(step.run().parts[StepPart::Recompute] < none.forward * 8);
  REQUIRE(step.run().parts[StepPart::Recompute] > SimTime());
  const SimTime attention = step.run().parts[StepPart::Recompute];
  step.software.recomputes_products = true;
  // Half of the products forward, which are a third of all, and what is bound by memory, which
  // takes 1.6 times as long backward.
  REQUIRE(step.run().parts[StepPart::Recompute].seconds() ==
          Approx(none.parts[StepPart::Linear].seconds() / 6.0 +
                 none.parts[StepPart::MemoryBound].seconds() / 2.6)
              .epsilon(0.05));
  REQUIRE(step.run().parts[StepPart::Recompute] > attention);
  step.plan.recompute = Recompute::Full;
  const StepTime full = step.run();
  REQUIRE(full.time > none.time);
  REQUIRE(full.parts[StepPart::Recompute] < none.forward * 8);
  REQUIRE(full.parts[StepPart::Recompute].seconds() >
          0.9 * (none.forward * 8 - none.parts[StepPart::Head]).seconds());
  // Without the last product, and its traffic, backward needs no more; and with its input at hand.
  const auto again = [&](FullRecompute kind) {
    step.software.full_recompute = kind;
    return step.run().parts[StepPart::Recompute].seconds();
  };
  const double products = none.parts[StepPart::Linear].seconds() / 3.0;
  const double whole = again(FullRecompute::Layer);
  const double sum = none.parts[StepPart::Tensor].seconds() / 4.0;
  REQUIRE(whole - again(FullRecompute::Needed) - sum ==
          Approx(products * 3.5 / (2.5 + 3 * 3.5)).epsilon(0.05));
  REQUIRE(again(FullRecompute::Needed) - again(FullRecompute::Unprojected) ==
          Approx(products * 1.5 / (2.5 + 3 * 3.5)).epsilon(0.05));
}

TEST_CASE("small layers take the time for which they are launched", "[step]") {
  TestStep step = llama({});
  step.plan.sequence = 16;
  const StepTime result = step.run();
  const double layers = 32.0;
  REQUIRE(result.parts[StepPart::Host] > result.parts[StepPart::Linear]);
  REQUIRE((result.forward + result.backward).seconds() >=
          2.3 * layers * step.rates.host_layer.seconds());
}

TEST_CASE("where the host waits for each kernel, launches come on top of all computation",
          "[step]") {
  TestStep step = llama({.micro_batch = 4});
  const SimTime beside = step.run().parts.total();
  step.software.host_sync = 1.0;
  const StepTime waiting = step.run();
  // Eight micro-batches of 32 layers: a forward pass, and 1.3 times its launches backward.
  const double launches = 8 * 32 * 2.3 * step.rates.host_layer.seconds();
  REQUIRE(waiting.parts[StepPart::Host].seconds() == Approx(launches));
  REQUIRE((waiting.parts.total() - beside).seconds() == Approx(launches).epsilon(0.02));
}

TEST_CASE("owners of whole matrices broadcast them one after the other, and none of it hides",
          "[step]") {
  TestStep step = llama({.data = 64, .zero_stage = 1});
  step.overlap.data = true;
  const SimTime sliced = step.run().parts[StepPart::Data];
  step.software.deals_out_matrices = true;
  const SimTime owned = step.run().parts[StepPart::Data];
  // 2 bytes of 8 billion parameters, sent whole by each link at 100 GB/s.
  REQUIRE((owned - sliced).seconds() > 0.9 * 16e9 / 100e9);
  // With ZeRO 2 there are slices alone.
  step.plan.zero_stage = 2;
  const SimTime scattered = step.run().parts[StepPart::Data];
  step.software.deals_out_matrices = false;
  REQUIRE(step.run().parts[StepPart::Data] == scattered);
}

TEST_CASE("tokens travel once to each domain where the software does so", "[step]") {
  TestStep step{.model = shipped_model("deepseek-v3"),
                .plan = {.data = 32, .expert = 32, .micro_batch = 1, .global_batch = 64}};
  step.model.layers.resize(8);
  step.plan.sequence = 4096;
  step.software = shipped_software("megatron-core");
  const SimTime copies = step.run().parts[StepPart::Expert];
  step.software.dispatches_by_domain = true;
  const SimTime once = step.run().parts[StepPart::Expert];
  // Eight copies, 31 of 32 to other ranks. Where all links are alike, the hop within the domain is
  // the longer one: a copy for each rank.
  const double ranks = expected_places(*step.model.layers.back().experts, 32);
  REQUIRE(once / copies == Approx(ranks * 7.0 / 8.0 / (8.0 * 31.0 / 32.0)).epsilon(0.01));
  step.ranks_of_server = 32;
  REQUIRE(step.run().parts[StepPart::Expert] < copies);
  step.overlap.expert = true;
  REQUIRE(step.run().parts[StepPart::Expert] < once);

  step.software.dispatches_fp8 = true;
  step.overlap.expert = false;
  const SimTime wide = step.run().parts[StepPart::Expert];
  step.rates.fp8_cast = 1.0;
  const SimTime narrow = step.run().parts[StepPart::Expert];
  REQUIRE(narrow / wide == Approx(0.75).epsilon(0.01));
}

TEST_CASE("the fullest expert rank sets the time of a layer", "[step]") {
  TestStep step{.model = shipped_model("mixtral-8x7b"),
                .plan = {.data = 8, .expert = 8, .micro_batch = 1, .global_batch = 16}};
  step.model.layers.resize(4);
  step.plan.sequence = 4096;
  const StepTime even = step.run();
  step.loads.imbalance = 2.0;
  const StepTime uneven = step.run();
  REQUIRE(uneven.parts[StepPart::Expert] / even.parts[StepPart::Expert] ==
          Approx(2.0).epsilon(0.01));
  REQUIRE(uneven.parts[StepPart::Linear] > even.parts[StepPart::Linear]);
  REQUIRE(uneven.parts[StepPart::Attention] == even.parts[StepPart::Attention]);
}

TEST_CASE("ZeRO shards the optimizer, and stage 3 gathers for each micro-batch", "[step]") {
  TestStep step = llama({.data = 8});
  const StepTime whole = step.run();
  step.plan.zero_stage = 1;
  const StepTime sharded = step.run();
  REQUIRE(whole.parts[StepPart::Optimizer] / sharded.parts[StepPart::Optimizer] ==
          Approx(8.0).epsilon(0.001));
  step.plan.zero_stage = 3;
  const StepTime gathered = step.run();
  // Three times the parameters for each of eight micro-batches, instead of twice for the step.
  REQUIRE(gathered.parts[StepPart::Data] / sharded.parts[StepPart::Data] ==
          Approx(12.0).epsilon(0.01));
}

TEST_CASE("what is not modelled is refused in one line", "[step]") {
  TestStep unfused = llama({.context = 2});
  unfused.software = shipped_software("megatron-unfused");
  unfused.rates.has_fused_attention = false;
  REQUIRE_THROWS_MATCHES(
      unfused.run(), ConfigError,
      Catch::Matchers::Message("step: expected fused attention with context ranks, found 2 of them "
                               "and software megatron-unfused"));
  TestStep experts{.model = shipped_model("mixtral-8x7b"),
                   .plan = {.tensor = 2, .global_batch = 8, .sequence = 4096}};
  REQUIRE_THROWS_MATCHES(
      experts.run(), ConfigError,
      Catch::Matchers::Message(
          "step: expected sequence_parallel for experts on 2 tensor ranks, found none"));
  experts.plan = {.data = 4, .zero_stage = 1, .shard_group = 2, .global_batch = 8};
  REQUIRE_THROWS_MATCHES(
      experts.run(), ConfigError,
      Catch::Matchers::Message("step: expected no shard_group with experts, which shard over all "
                               "ranks with the same, found 2"));
}

TEST_CASE("what runs overlapped with computation is the choice of the workload, or of the software",
          "[step]") {
  const SoftwareProfile software = shipped_software("nemo");
  REQUIRE(overlap_of({}, software).tensor);
  REQUIRE_FALSE(overlap_of({.tensor = false}, software).tensor);
  REQUIRE(overlap_of({.tensor = false}, software).data);
  REQUIRE_FALSE(overlap_of({}, shipped_software("megatron-unfused")).pipeline);
}

TEST_CASE("stages of one server hand over faster than those of two", "[step]") {
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
TEST_CASE("a pipeline over several racks pays for each of its hops, as the graph does", "[step]") {
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

// QwenLM/Qwen, README, "Profiling of Memory and Speed", rows of LoRA; rank, targets and
// recomputation as in its finetune.py and finetune/finetune_lora_single_gpu.sh. No constant was
// fitted to them.
TEST_CASE("fine-tuning of Qwen on one A100 takes about as long as was measured", "[step]") {
  struct Measured {
    Model model;
    std::array<double, 6> seconds;  // From 256 tokens on, each time twice as many.
  };
  const std::array<Measured, 3> tables{
      Measured{qwen(2048, 24, 5504, 151'936), {1.0, 1.0, 1.1, 1.7, 3.3, 6.8}},
      Measured{qwen(4096, 32, 11'008, 151'936), {1.2, 1.5, 2.8, 5.2, 10.1, 21.3}},
      Measured{qwen(5120, 40, 13'696, 152'064), {1.6, 2.4, 4.4, 8.4, 17.0, 36.0}}};
  std::vector<double> ratios;
  for (const Measured& table : tables) {
    std::int64_t sequence = 256;
    for (const double seconds : table.seconds) {
      INFO(table.model.hidden << " with " << sequence << " tokens");
      ratios.push_back(fine_tuned(table.model, sequence) / seconds);
      REQUIRE(ratios.back() > 0.9);
      REQUIRE(ratios.back() < 1.25);
      sequence *= 2;
    }
  }
  std::sort(ratios.begin(), ratios.end());
  REQUIRE(ratios[ratios.size() / 2] == Approx(1.05).margin(0.03));
}

}  // namespace trainyard
