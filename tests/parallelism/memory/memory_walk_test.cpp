// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/memory/memory_walk.h"

#include <algorithm>
#include <vector>

#include "parallelism/operators/rank_parameters.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

struct WalkCase {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  MemorySettings settings = {};

  [[nodiscard]] RankMemory walk(const ParallelPlan& plan, int rank = 0) const {
    return rank_memory(model, plan, settings, {}, rank);
  }
  [[nodiscard]] Bytes kept_by_layer(const ParallelPlan& plan) const {
    return saved_bytes(kept_tensors(model, model.layers.front(), plan, settings.activations),
                       plan.tokens())
        .forward;
  }
};

Bytes max(const RankMemory& memory, MemoryClass memory_class) {
  Bytes max_yet;
  for (const MemoryMoment& moment : memory.moments) {
    max_yet = std::max(max_yet, moment.use[memory_class]);
  }
  return max_yet;
}

}  // namespace

TEST_CASE("passes that are recalled are as if they were walked again", "[memory-walk]") {
  const WalkCase test;
  const auto check = [&](const ParallelPlan& plan) {
    for (int rank = 0; rank < plan.pipeline; ++rank) {
      const RankMemory recalled =
          rank_memory(test.model, plan, test.settings, {}, rank, RepeatedPasses::Recall);
      const RankMemory walked =
          rank_memory(test.model, plan, test.settings, {}, rank, RepeatedPasses::WalkAgain);
      INFO("rank " << rank << ", " << to_string(plan.schedule));
      REQUIRE(recalled.highest().position == walked.highest().position);
      REQUIRE(recalled.host.activations == walked.host.activations);
      REQUIRE(recalled.passes == walked.passes);
      REQUIRE(walked.moments.size() == walked.passes.size());
      for (std::size_t i = 0; i < walked.passes.size(); ++i) {
        REQUIRE(recalled.moment(i).position == walked.moment(i).position);
        REQUIRE(recalled.moment(i).where() == walked.moment(i).where());
        REQUIRE(recalled.moment(i).use.by_class == walked.moment(i).use.by_class);
      }
    }
  };
  check({.data = 8, .zero_stage = 3, .global_batch = 160});
  ParallelPlan offloaded{.data = 8, .zero_stage = 2, .global_batch = 160};
  offloaded.offload.activations = true;
  check(offloaded);
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    ParallelPlan plan{.pipeline = 4, .data = 2, .global_batch = 48};
    plan.schedule = schedule;
    plan.chunks = schedule->chunks.value_or(2);
    check(plan);
  }
}

TEST_CASE("a hundred thousand micro-batches are walked as a few", "[memory-walk]") {
  const WalkCase test;
  const RankMemory memory = test.walk({.global_batch = 100'000});
  const RankMemory few = test.walk({.global_batch = 2});
  REQUIRE(memory.passes.size() == 200'001);
  REQUIRE(memory.highest().use.by_class == few.highest().use.by_class);
  REQUIRE(memory.moment(199'999).use.by_class == few.moment(3).use.by_class);
  REQUIRE(memory.moments.size() < 8);
}

TEST_CASE("an offloaded optimizer is in host memory, and nowhere else", "[memory-walk]") {
  const WalkCase test;
  const std::int64_t share = (parameters_of(test.model).total() + 7) / 8;
  ParallelPlan plan{.data = 8, .zero_stage = 2, .global_batch = 16};
  const MemoryUse before = test.walk(plan).moments.back().use;
  plan.offload.optimizer = true;
  const RankMemory memory = test.walk(plan);
  const MemoryUse use = memory.moments.back().use;
  REQUIRE(before[MemoryClass::OptimizerStates] == Bytes(12 * share));
  REQUIRE(use[MemoryClass::OptimizerStates] == Bytes(0));
  REQUIRE(use[MemoryClass::Weights] == before[MemoryClass::Weights]);
  // Two micro-batches are added up on the GPU.
  REQUIRE(use[MemoryClass::Gradients] == Bytes(4 * share));
  REQUIRE(memory.host.optimizer == Bytes(12 * share));
  REQUIRE(memory.host.gradients == Bytes(4 * share));
  REQUIRE(memory.host.activations == Bytes(0));
  plan.global_batch = 8;  // One leaves as it is made.
  REQUIRE(test.walk(plan).moments.back().use[MemoryClass::Gradients] == Bytes(0));
  plan.zero_stage = 0;  // Then the gradients of a layer are there, and no others.
  const RankMemory whole = test.walk(plan);
  REQUIRE(whole.moments.back().use[MemoryClass::Gradients] == Bytes(0));
  REQUIRE(max(whole, MemoryClass::GatheredWeights) >=
          Bytes(4 * rank_parameters(test.model, test.model.layers.front(), plan).total()));
  REQUIRE(whole.host.optimizer == Bytes(12 * parameters_of(test.model).total()));
}

TEST_CASE("what gradient compression keeps is in buffers", "[memory-walk]") {
  const WalkCase test;
  ParallelPlan plan{.data = 8, .global_batch = 8};
  const RankMemory plain = test.walk(plan);
  plan.compression = GradientCompression{.method = CompressionMethod::PowerSgd, .rank = 2};
  const Bytes more = max(test.walk(plan), MemoryClass::Buffers) - max(plain, MemoryClass::Buffers);
  const RankParameters all =
      place_parameters(test.model, pipeline_stages(plan, test.model), plan, 0);
  REQUIRE(more == Bytes(all.dense + all.dense_thin.left + all.dense_thin.right) *
                      test.settings.states.gradient);
  plan.compression = GradientCompression{};
  REQUIRE(max(test.walk(plan), MemoryClass::Buffers) == max(plain, MemoryClass::Buffers));
}

TEST_CASE("wide weights are the master copy, and go with the optimizer", "[memory-walk]") {
  WalkCase test;
  test.settings = memory_settings("pytorch-fsdp");  // 4 + 4 + 8, layers in 2.
  const std::int64_t share = (parameters_of(test.model).total() + 7) / 8;
  const RankMemory memory =
      test.walk({.data = 8, .zero_stage = 3, .global_batch = 16, .offload = {.optimizer = true}});
  REQUIRE(memory.moments.back().use[MemoryClass::Weights] == Bytes(2 * share));
  REQUIRE(memory.host.optimizer == Bytes((8 + 4) * share));
}

TEST_CASE("of offloaded activations two layers are on the GPU", "[memory-walk]") {
  const WalkCase test;
  for (const int pipeline : {2, 4}) {  // The first rank has no head, at which its peak would be.
    ParallelPlan plan{.pipeline = pipeline, .global_batch = 8, .sequence = 2048};
    const RankMemory before = test.walk(plan);
    plan.offload.activations = true;
    const RankMemory memory = test.walk(plan);
    const Bytes layer = test.kept_by_layer(plan);
    const std::int64_t layers = 32 / pipeline;
    // 1F1B has as many micro-batches alive on the first rank as there are ranks.
    REQUIRE(memory.host.activations == layer * layers * pipeline);
    REQUIRE(max(before, MemoryClass::Activations) >= layer * layers * pipeline);
    REQUIRE(max(memory, MemoryClass::Activations) == layer * 2);
  }
}

TEST_CASE("offloaded activations come back under every schedule", "[memory-walk]") {
  const WalkCase test;
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    ParallelPlan plan{.pipeline = 4,
                      .schedule = schedule,
                      .chunks = schedule->chunks.value_or(2),
                      .global_batch = 16,
                      .sequence = 2048,
                      .recompute = Recompute::Selective};
    for (int rank = 0; rank < 4; ++rank) {
      INFO(to_string(schedule) << ", rank " << rank);
      const RankMemory before = test.walk(plan, rank);
      ParallelPlan offloading = plan;
      offloading.offload.activations = true;
      const RankMemory memory = test.walk(offloading, rank);  // CHECKs that all have come back.
      REQUIRE(memory.host.activations > Bytes(0));
      REQUIRE(memory.highest().use.device() < before.highest().use.device());
    }
  }
}

}  // namespace trainyard
