// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/software_memory.h"

#include <cstdint>
#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

SoftwareProfile software_named(const std::string& name) {
  return SoftwareProfile::load(kConfigsFolder / "software" / (name + ".yaml"));
}

}  // namespace

TEST_CASE("a software profile represents a stack", "[memory]") {
  const MemorySettings core = memory_settings(software_named("megatron-core"));
  REQUIRE(core.weight_gradients == WeightGradientBuffer::CachedByShape);
  REQUIRE(core.activations.attention == AttentionKernel::Flash);
  REQUIRE(core.states.gradient == 4);
  REQUIRE(memory_settings(software_named("nemo")).states.gradient == 2);
  const MemorySettings unfused = memory_settings(software_named("megatron-unfused"));
  REQUIRE(unfused.activations.attention == AttentionKernel::Unfused);
  REQUIRE(unfused.activations.has_dropout);
  REQUIRE(unfused.states.gradient == 2);
  for (const char* name : {"pytorch-compiled", "pytorch-native"}) {
    const MemorySettings pytorch = memory_settings(software_named(name));
    REQUIRE(pytorch.states.weight == 4);
    REQUIRE(pytorch.activations.loss == LossKernel::PyTorch);
  }
}

TEST_CASE("stages are those of the plan", "[memory]") {
  // 126 layers on 16 stages: one less at both ends.
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "llama-3-405b.yaml");
  const SoftwareProfile software = software_named("megatron-core");
  ParallelPlan plan{.tensor = 8,
                    .has_sequence_parallelism = true,
                    .pipeline = 16,
                    .data = 128,
                    .zero_stage = 1,
                    .global_batch = 2048,
                    .sequence = 8192};
  const StepMemory dealt_out = step_memory(model, plan, software, {});
  plan.stage_layers = {7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7};
  const StepMemory said = step_memory(model, plan, software, {});
  for (std::size_t rank = 0; rank < 16; ++rank) {
    REQUIRE(said.ranks[rank].highest().use.by_class ==
            dealt_out.ranks[rank].highest().use.by_class);
  }
}

TEST_CASE("what experts keep is that of the fullest rank, in each layer as its time", "[memory]") {
  const Model model = load_model(kConfigsFolder / "workloads" / "models" / "mixtral-8x7b.yaml");
  const SoftwareProfile software = software_named("megatron-core");
  ParallelPlan plan{.data = 8, .expert = 8, .zero_stage = 1, .global_batch = 8, .sequence = 4096};
  const auto kept = [&](const ExpertLoads& loads) {
    const StepMemory memory = step_memory(model, plan, software, loads);
    return memory.highest().highest().use[MemoryClass::Activations];
  };
  // Inputs of two linears, twice the inner vector before the activation, 16 bits, two experts.
  const std::int64_t hidden = model.hidden;
  const std::int64_t inner = model.layers[0].experts->expert.size;
  const Bytes of_layer = Bytes(2 * 2 * 4096 * (hidden + 2 * inner + inner));
  REQUIRE((kept({.imbalance = 4.0}) - kept({.imbalance = 2.0})).count() ==
          (of_layer * 2 * 32).count());
  REQUIRE(kept({.imbalance = 4.0, .capacity = 2.0}) == kept({.imbalance = 2.0}));
  const auto of_five = [](double max) {
    return ExpertLoads{
        .layers = {
            {.first = 3, .last = 7, .loads = {8.0 - max, max, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}}}};
  };
  REQUIRE((kept(of_five(6.0)) - kept(of_five(4.0))).count() == (of_layer * 2 * 5).count());
  REQUIRE(kept({.imbalance = 2.0}) > kept(of_five(2.0)));
  // Alone with all experts, a rank has no more than the mean.
  plan.expert = 1;
  REQUIRE(kept({.imbalance = 4.0}) == kept({}));
  // Sums that no integer holds.
  plan.expert = 8;
  plan.sequence = 1 << 20;
  REQUIRE_THROWS_AS(kept({.imbalance = 1e6}), ConfigError);
}

TEST_CASE("in 32 bits weights are their own master copy and activations twice as large",
          "[software_memory]") {
  const Model model = load_model(kConfigsFolder / "workloads/models/megatron-1.7b.yaml");
  const SoftwareProfile software = software_named("megatron-unfused");
  ParallelPlan plan{.data = 2, .global_batch = 2, .sequence = 2048};
  const MemoryUse half = step_memory(model, plan, software, {}).highest().highest().use;
  plan.element_bytes = 4;
  const MemoryUse full = step_memory(model, plan, software, {}).highest().highest().use;
  const std::int64_t parameters = parameters_of(model).total();
  REQUIRE(half[MemoryClass::Weights] == Bytes(2 * parameters));
  REQUIRE(full[MemoryClass::Weights] == Bytes(4 * parameters));
  REQUIRE(full[MemoryClass::Gradients] == Bytes(4 * parameters));
  REQUIRE(half[MemoryClass::OptimizerStates] == Bytes(12 * parameters));
  REQUIRE(full[MemoryClass::OptimizerStates] == Bytes(8 * parameters));
  // Masks of dropout stay bytes.
  REQUIRE(full[MemoryClass::Activations] * 10 > half[MemoryClass::Activations] * 18);
  REQUIRE(full[MemoryClass::Activations] < half[MemoryClass::Activations] * 2);
}

}  // namespace trainyard
