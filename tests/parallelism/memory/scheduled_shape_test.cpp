// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/scheduled_shape.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {

// arXiv 2401.10241, table 1: a layer keeps s b h (34 + 5 a s / h) of a forward, and 32 s b h of it
// between the two halves of its backward.
TEST_CASE("a schedule that fills memory knows what its stages keep", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "gpt-3-175b.yaml");
  const MemorySettings settings = memory_settings("megatron-2022");
  ParallelPlan plan{
      .pipeline = 8, .schedule = &kZeroBubble1p, .micro_batch = 2, .global_batch = 64};
  const std::vector<StageMemory> stages = scheduled_shape(model, plan, settings, {}).stage_memory;
  REQUIRE(stages.size() == 8);
  const std::int64_t tokens = 2 * 2048;
  for (std::size_t stage = 1; stage < 7; ++stage) {
    REQUIRE(stages[stage].forward.count() == 12 * tokens * (34 * 12288 + 5 * 96 * 2048));
    REQUIRE(stages[stage].weight.count() == 12 * tokens * 32 * 12288);
  }
  REQUIRE(stages.front().forward > stages[1].forward);  // The mask of the embedding.
  REQUIRE(stages.back().weight > stages[1].weight);     // The head.

  plan.schedule = &kZeroBubbleH1;
  REQUIRE(scheduled_shape(model, plan, settings, {}).stage_memory.empty());
}

TEST_CASE("what stages keep is known where the memory of a plan is refused", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "deepseek-v3.yaml");
  const ParallelPlan plan{.pipeline = 4,
                          .schedule = &kZeroBubble2p,
                          .global_batch = 16,
                          .recompute = Recompute::Selective};
  const PipelineShape shape = scheduled_shape(model, plan, memory_settings("pytorch-fsdp"), {});
  REQUIRE(shape.stage_memory.size() == 4);
  REQUIRE(shape.stage_memory[1].forward.count() > 0);
}

// A rank with as many layers as the others holds p micro-batches, and none holds more.
TEST_CASE("the walk of a step meets the limit of its schedule", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "gpt-3-175b.yaml");
  const MemorySettings settings = memory_settings("megatron-2022");
  const ParallelPlan plan{.pipeline = 8, .schedule = &kZeroBubble1p, .global_batch = 32};
  const PipelineShape shape = scheduled_shape(model, plan, settings, {});
  const StepMemory memory = step_memory(model, plan, settings);
  Bytes most;
  for (const RankMemory& rank : memory.ranks) {
    for (const MemoryMoment& moment : rank.moments) {
      most = std::max(most, moment.use[MemoryClass::Activations]);
    }
  }
  REQUIRE(most <= shape.stage_memory[0].forward * 8);
  REQUIRE(most >= shape.stage_memory[1].forward * 8);
}

}  // namespace trainyard
