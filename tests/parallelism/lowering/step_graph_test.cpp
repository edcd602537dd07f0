// SPDX-License-Identifier: Apache-2.0
// Graphs of steps against closed forms: equal to the picosecond where nothing runs beside anything,
// within stated bounds where something does.
#include "support/catch.h"

#include "parallelism/lowering/step_graph.h"
#include "parallelism/model/pipeline_schedule.h"

#include <array>
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
  int ranks_of_server = 8;

  [[nodiscard]] StepJob job() {
    servers.clear();
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      servers.push_back(rank / ranks_of_server);
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

// Encoders and models of images, whose ends and layers have work for each sample.
GraphStepCase encoder_case(const std::string& model, ParallelPlan plan) {
  plan.global_batch = 8 * plan.micro_batch * plan.data;
  GraphStepCase made{.model = load_model(kConfigsFolder / "workloads/models" / (model + ".yaml")),
                     .plan = plan};
  made.plan.sequence = made.model.patches ? made.model.patches->tokens() : 512;
  made.model.layers.resize(8);
  check(made.plan, made.model, plan.ranks());
  return made;
}

// Plans of every kind without ranks that share gradients, but for one stage of a pipeline.
std::vector<ParallelPlan> plans_without_windows() {
  std::vector<ParallelPlan> plans{
      {},
      {.tensor = 8, .has_sequence_parallelism = true},
      {.tensor = 4},
      {.tensor = 2, .context = 2, .data = 2},
      {.context = 4, .context_kind = ContextParallelism::AllToAll, .data = 2},
      {.tensor = 2, .data = 4, .zero_stage = 1},
      {.data = 8, .zero_stage = 2, .shard_group = 4, .recompute = Recompute::Full},
      {.tensor = 2, .context = 2, .data = 2, .zero_stage = 3},
      {.data = 8, .zero_stage = 3, .shard_group = 4, .recompute = Recompute::Selective},
      {.tensor = 2, .pipeline = 4, .schedule = &kGPipe},
      {.tensor = 2, .has_sequence_parallelism = true, .pipeline = 4},
      {.tensor = 2, .pipeline = 4, .recompute = Recompute::Full},
      {.pipeline = 4, .schedule = &kInterleaved, .chunks = 4},
      {.pipeline = 2, .schedule = &kInterleaved, .chunks = 2},
      {.tensor = 2, .pipeline = 4, .schedule = &kZeroBubbleH1},
      {.pipeline = 2, .schedule = &kZeroBubbleV, .chunks = 2}};
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    plans.push_back({.pipeline = 4, .schedule = schedule, .chunks = schedule->chunks.value_or(2)});
  }
  return plans;
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
      if (plan.schedule == &kDualPipe && !has_streams) {
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

TEST_CASE("encoders and models of images take what the closed forms say, to the picosecond",
          "[step_graph]") {
  const std::vector<ParallelPlan> plans{
      {.micro_batch = 4},
      {.tensor = 4, .micro_batch = 2},
      {.tensor = 2, .pipeline = 4, .micro_batch = 2},
      {.pipeline = 2, .schedule = &kInterleaved, .chunks = 2},
      {.tensor = 2, .pipeline = 2, .schedule = &kZeroBubbleH1, .micro_batch = 2},
      {.data = 4, .zero_stage = 3, .recompute = Recompute::Full}};
  for (const std::string name : {"bert-large", "vit-large-16", "dit-xl-2"}) {
    for (const ParallelPlan& plan : plans) {
      INFO(name << " " << name_of(plan));
      const GraphStepCase drawn = encoder_case(name, plan);
      GraphStepCase step = drawn;
      const StepTime closed = step.closed();
      const StepGraphRun graph = step.graph();
      REQUIRE(graph.step.time == closed.time);
      REQUIRE(graph.step.parts.total() == graph.step.time);
      REQUIRE(step.graph(Folding::Unfolded).step.parts == graph.step.parts);
    }
  }
  GraphStepCase split = encoder_case(
      "dit-xl-2", {.tensor = 4, .has_sequence_parallelism = true, .context = 2, .micro_batch = 2});
  REQUIRE(split.graph().step.time == split.closed().time);
}

TEST_CASE("ZeRO 3 gathers for the first half of a parted backward and reduces behind the second",
          "[step_graph]") {
  const std::vector<ParallelPlan> plans{
      {.pipeline = 4, .data = 2, .zero_stage = 3},
      {.pipeline = 4, .schedule = &kZeroBubbleH1, .data = 2, .zero_stage = 3},
      {.pipeline = 4, .schedule = &kZeroBubbleH2, .data = 2, .zero_stage = 3},
      {.pipeline = 2,
       .schedule = &kZeroBubbleV,
       .chunks = 2,
       .data = 4,
       .zero_stage = 3,
       .recompute = Recompute::Selective}};
  for (const ParallelPlan& plan : plans) {
    INFO(name_of(plan));
    GraphStepCase step = case_of("llama-3-8b", plan);
    step.overlap.pipeline = true;
    const StepTime closed = step.closed();
    REQUIRE(closed.parts[StepPart::Data] > SimTime());
    REQUIRE(step.graph().step.time == closed.time);
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

TEST_CASE("tokens sent once to each domain, and hosts that wait, take what the closed forms say",
          "[step_graph]") {
  for (const int ranks_of_server : {4, 8}) {
    for (const double sync : {0.0, 1.5}) {
      INFO("ranks of a server " << ranks_of_server << " sync " << sync);
      GraphStepCase step = case_of("mixtral-8x7b", {.data = 16, .expert = 8});
      step.ranks_of_server = ranks_of_server;
      step.plan.recompute = sync > 0.0 ? Recompute::Full : Recompute::None;
      step.software.dispatches_by_domain = true;
      step.software.host_expert_sync = sync;
      const StepTime closed = step.closed(20e9);
      const StepGraphRun folded = step.graph(Folding::Folded, 20e9);
      REQUIRE(folded.step.time == closed.time);
      REQUIRE(folded.step.parts == closed.parts);
      REQUIRE(step.graph(Folding::Unfolded, 20e9).step.parts == closed.parts);
      step.overlap.expert = true;
      REQUIRE(step.graph(Folding::Folded, 20e9).step.time <= folded.step.time);
    }
  }
}

TEST_CASE(
    "owners of whole matrices, and hosts that wait for each kernel, take what the closed forms say",
    "[step_graph]") {
  const std::vector<ParallelPlan> plans{{.data = 16, .zero_stage = 1},
                                        {.tensor = 2, .data = 8, .zero_stage = 1, .shard_group = 4},
                                        {.data = 8, .zero_stage = 1, .recompute = Recompute::Full}};
  for (const ParallelPlan& plan : plans) {
    INFO(name_of(plan));
    GraphStepCase step = case_of("llama-3-8b", plan);
    step.software.deals_out_matrices = true;
    step.software.host_sync = 1.0;
    const StepTime closed = step.closed();
    REQUIRE(step.graph().step.parts == closed.parts);
    REQUIRE(step.graph(Folding::Unfolded).step.parts == closed.parts);
    // Beside computation gradients alone: weights wait for the optimizer.
    step.overlap.data = true;
    REQUIRE(step.graph().step.time < closed.time);
    REQUIRE(step.graph().step.parts[StepPart::Data] > SimTime());
  }
}

TEST_CASE("rings that are gathered, and layers run again in part, take what the closed forms say",
          "[step_graph]") {
  const std::vector<ParallelPlan> plans{
      {.tensor = 2, .context = 4, .recompute = Recompute::Full},
      {.tensor = 4, .has_sequence_parallelism = true, .context = 2, .recompute = Recompute::Full},
      {.tensor = 2, .pipeline = 4, .recompute = Recompute::Full}};
  for (const ParallelPlan& plan : plans) {
    for (const FullRecompute kind : {FullRecompute::Needed, FullRecompute::Unprojected}) {
      for (const char* fusion : {"compiled", "eager"}) {
        INFO(name_of(plan) << " " << fusion);
        GraphStepCase step = case_of("llama-3-8b", plan);
        step.software.gathers_keys = true;
        step.software.fusion = fusion;
        step.rates.gathers_keys = true;
        step.rates.host_layer = {};
        step.rates.host_collective = {};
        step.software.full_recompute = kind;
        const StepTime closed = step.closed();
        REQUIRE(step.graph().step.time == closed.time);
        if (plan.pipeline == 1) {
          REQUIRE(step.graph().step.parts == closed.parts);
        }
        step.software.full_recompute = FullRecompute::Layer;
        REQUIRE(step.closed().time > closed.time);
      }
    }
  }
}

TEST_CASE("beside gradients and weights of a pipeline the graph is no slower than the closed forms",
          "[step_graph]") {
  for (ParallelPlan plan : plans_without_windows()) {
    if (plan.pipeline == 1) {
      continue;
    }
    plan.data = 2;
    for (const int zero_stage : {0, 1}) {
      plan.zero_stage = zero_stage;
      INFO(name_of(plan));
      GraphStepCase step = case_of("llama-3-8b", plan);
      step.overlap.pipeline = true;
      const StepTime closed = step.closed();
      const StepGraphRun graph = step.graph();
      // Ranks that end early reduce and optimise while the others still compute; jitter is at most
      // a hundredth of that.
      const SimTime max = closed.parts[StepPart::Data] + closed.parts[StepPart::Optimizer];
      REQUIRE(graph.step.time <= closed.time);
      REQUIRE(graph.step.time >= closed.time - max - SimTime(max.picoseconds() / 100));
    }
  }
}

TEST_CASE("gradient compression takes in the graph what the closed forms say", "[step_graph]") {
  const std::vector<GradientCompression> all{{.method = CompressionMethod::Fp16},
                                             {.method = CompressionMethod::PowerSgd, .rank = 4},
                                             {.method = CompressionMethod::TopK, .ratio = 0.01}};
  for (const GradientCompression& compression : all) {
    INFO(to_string(compression.method));
    GraphStepCase step = case_of("llama-3-8b", {.data = 8, .compression = compression});
    step.software = shipped_software("pytorch-native");
    step.rates = shipped_compute("H100-SXM", "pytorch-native");
    REQUIRE(step.graph().step.parts == step.closed().parts);
    step.overlap.data = true;
    for (const double rate : {2e9, 20e9, 100e9}) {
      const SimTime closed = step.closed(rate).time;
      const StepGraphRun graph = step.graph(Folding::Folded, rate);
      REQUIRE(graph.step.time.seconds() == Approx(closed.seconds()).epsilon(0.05));
      REQUIRE(step.graph(Folding::Unfolded, rate).step.parts == graph.step.parts);
    }
    // Slow networks gain by it.
    GraphStepCase plain = step;
    plain.plan.compression.reset();
    REQUIRE(step.graph(Folding::Folded, 2e9).step.time <
            plain.graph(Folding::Folded, 2e9).step.time);
  }
}

// On the stream of the gathers, all_reduces that fill the backward pass made it half as long again.
TEST_CASE("weights of shards do not wait for gradients of replicas", "[step_graph]") {
  GraphStepCase step = case_of(
      "llama-3-8b", {.data = 32, .zero_stage = 3, .shard_group = 8, .recompute = Recompute::Full});
  step.overlap.data = true;
  for (const double rate : {5e9, 20e9, 100e9}) {
    INFO(rate);
    const StepGraphRun graph = step.graph(Folding::Folded, rate);
    REQUIRE(graph.step.time.seconds() == Approx(step.closed(rate).time.seconds()).epsilon(0.03));
    REQUIRE(step.graph(Folding::Unfolded, rate).step.parts == graph.step.parts);
  }
}

TEST_CASE("a folded graph takes as long as all ranks together, to the picosecond",
          "[step_graph][long]") {
  std::vector<ParallelPlan> plans = plans_without_windows();
  for (std::size_t index = plans.size(); index-- > 0;) {
    ParallelPlan more = plans[index];
    more.data = 2;
    more.zero_stage = static_cast<int>(index % 3);
    more.shard_group = 0;
    plans.push_back(more);
  }
  for (const ParallelPlan& plan : plans) {
    for (const bool overlaps : {false, true}) {
      INFO(name_of(plan) << (overlaps ? ", overlapped" : ""));
      GraphStepCase step = case_of("llama-3-8b", plan);
      step.overlap = {.tensor = overlaps, .data = overlaps, .pipeline = overlaps};
      const StepGraphRun folded = step.graph(Folding::Folded, 20e9);
      const StepGraphRun whole = step.graph(Folding::Unfolded, 20e9);
      REQUIRE(folded.run.finish == whole.run.finish);
      REQUIRE(folded.step.time == whole.step.time);
      REQUIRE(folded.step.parts == whole.step.parts);
      REQUIRE(folded.lowered.graph.operations().size() *
                  static_cast<std::size_t>(plan.ranks() / plan.pipeline) ==
              whole.lowered.graph.operations().size());
    }
  }
}

TEST_CASE("random plans are the same folded and whole, and never beat what they compute",
          "[step_graph]") {
  for (std::uint64_t seed = 0; seed < cases(40); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "plans");
    const auto power = [&](std::uint64_t bound) { return 1 << random.below(bound); };
    ParallelPlan plan;
    plan.tensor = power(3);
    plan.has_sequence_parallelism = random.below(2) == 0 && plan.tensor > 1;
    plan.context = power(2);
    plan.pipeline = power(3);
    plan.data = power(3);
    constexpr std::array kSchedules{&kGPipe, &kOneForwardOneBackward, &kZeroBubbleH1,
                                    &kZeroBubbleH2};
    plan.schedule = kSchedules[random.below(kSchedules.size())];
    plan.zero_stage = static_cast<int>(random.below(4));
    constexpr std::array kRecompute{Recompute::None, Recompute::Selective, Recompute::Full};
    plan.recompute = kRecompute[random.below(kRecompute.size())];
    INFO(name_of(plan));
    GraphStepCase step = case_of("llama-3-8b", plan, 4);
    step.overlap.tensor = random.below(2) == 0;
    step.overlap.data = random.below(2) == 0;
    step.overlap.pipeline = random.below(2) == 0;
    const double rate = random.below(2) == 0 ? 100e9 : 5e9;
    const StepGraphRun folded = step.graph(Folding::Folded, rate);
    const StepGraphRun whole = step.graph(Folding::Unfolded, rate);
    REQUIRE(folded.step.parts == whole.step.parts);
    const StepTime closed = step.closed(rate);
    REQUIRE(folded.step.time > closed.parts[StepPart::Linear] + closed.parts[StepPart::Attention]);
    // Where the graph hides less than the closed forms, it is because there is less to hide behind.
    step.overlap = {};
    REQUIRE(folded.step.time / step.closed(rate).time < 1.01);
  }
}

TEST_CASE("a slow rank makes the step longer, by no more than it is slower", "[step_graph]") {
  GraphStepCase step = case_of("llama-3-8b", {.tensor = 2, .pipeline = 4, .data = 2});
  SteadyGroupTimes times(100e9);
  const StepJob job = step.job();
  const SimTime usual = run_step_graph(job, times, Folding::Unfolded).run.finish;
  GraphRunOptions options{.compute_ppm = std::vector<std::int64_t>(16, 1'000'000)};
  options.compute_ppm[5] = 1'200'000;
  const SimTime slow = run_step_graph(job, times, Folding::Unfolded, options).run.finish;
  REQUIRE(slow > usual);
  REQUIRE(slow / usual < 1.2);
}

TEST_CASE("jitter takes the place of the closed form for the spread of ranks", "[step_graph]") {
  GraphStepCase step = case_of("llama-3-8b", {.tensor = 2, .pipeline = 2, .data = 2});
  SteadyGroupTimes times(100e9);
  const StepJob job = step.job();
  const StepGraphRun usual = run_step_graph(job, times, Folding::Unfolded);
  const StepGraphRun slow =
      run_step_graph(job, times, Folding::Unfolded, {}, {.rank_ppm = 30'000, .seed = 1});
  REQUIRE(slow.step.parts[StepPart::Jitter] == SimTime());
  REQUIRE(slow.step.parts.total() == slow.step.time);
  REQUIRE(slow.run.finish > usual.run.finish);
  // As long as with all ranks as slow as the slowest, at most.
  const GraphRunOptions drawn =
      with_jitter({}, {.rank_ppm = 30'000, .seed = 1}, usual.lowered.graph);
  const std::int64_t slowest =
      *std::max_element(drawn.compute_ppm.begin(), drawn.compute_ppm.end());
  REQUIRE(slow.run.finish / usual.run.finish <= static_cast<double>(slowest) / 1e6);
}

}  // namespace trainyard
