// SPDX-License-Identifier: Apache-2.0
#include "parallelism/software_memory.h"

#include <string>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

SoftwareProfile shipped_software(const std::string& name) {
  return SoftwareProfile::load(kConfigsFolder / "software" / (name + ".yaml"));
}

}  // namespace

TEST_CASE("a software profile stands for a stack", "[memory]") {
  const MemorySettings core = memory_settings(shipped_software("megatron-core"));
  REQUIRE(core.weight_gradients == WeightGradientBuffer::CachedByShape);
  REQUIRE(core.activations.attention == AttentionKernel::Flash);
  REQUIRE(core.states.gradient == 4);
  REQUIRE(memory_settings(shipped_software("nemo")).states.gradient == 2);
  const MemorySettings unfused = memory_settings(shipped_software("megatron-unfused"));
  REQUIRE(unfused.activations.attention == AttentionKernel::Unfused);
  REQUIRE(unfused.activations.has_dropout);
  REQUIRE(unfused.states.gradient == 2);
  for (const char* name : {"pytorch-compiled", "pytorch-native"}) {
    const MemorySettings pytorch = memory_settings(shipped_software(name));
    REQUIRE(pytorch.states.weight == 4);
    REQUIRE(pytorch.activations.loss == LossKernel::PyTorch);
  }
}

TEST_CASE("stages are those of the plan", "[memory]") {
  // 126 layers on 16 stages: one less at both ends.
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "llama-3-405b.yaml");
  const SoftwareProfile software = shipped_software("megatron-core");
  ParallelPlan plan{.tensor = 8,
                    .has_sequence_parallelism = true,
                    .pipeline = 16,
                    .data = 128,
                    .zero_stage = 1,
                    .global_batch = 2048,
                    .sequence = 8192};
  const StepMemory dealt_out = step_memory(model, plan, software);
  plan.stage_layers = {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7};
  const StepMemory said = step_memory(model, plan, software);
  for (std::size_t rank = 0; rank < 16; ++rank) {
    REQUIRE(said.ranks[rank].highest().use.by_class ==
            dealt_out.ranks[rank].highest().use.by_class);
  }
}

}  // namespace trainyard
