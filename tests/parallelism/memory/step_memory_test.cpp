// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/step_memory.h"

#include <filesystem>
#include <string>
#include <vector>

#include "parallelism/model/pipeline_schedule.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/catch.h"
#include "support/paths.h"
#include "support/pipeline_forms.h"

namespace trainyard {
namespace {

Model shipped(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

SoftwareProfile software_named(const std::string& name) {
  return SoftwareProfile::load(kConfigsFolder / "software" / (name + ".yaml"),
                               kConfigsFolder / "software");
}

StepMemory memory_of(const Model& model, const ParallelPlan& plan,
                     const MemorySettings& settings = {}) {
  return step_memory(model, plan, settings);
}

// Without head, loss and anything beside layers, so that closed forms hold to the byte.
MemoryUse resident(const Model& model, const ParallelPlan& plan, const MemorySettings& settings) {
  return memory_of(model, plan, settings).ranks.front().moments.back().use;
}

void require_refused(const ParallelPlan& plan, const Model& model, const std::string& message) {
  INFO(message);
  REQUIRE_THROWS_MATCHES(step_memory(model, plan, MemorySettings()), ConfigError,
                         Catch::Matchers::Message("memory: " + message));
}

}  // namespace

TEST_CASE("sharding divides states as ZeRO says", "[memory]") {
  const Model model = shipped("llama-3-8b");
  const std::int64_t parameters = parameters_of(model).total();
  const MemorySettings settings{.states = {.gradient = 2}};
  ParallelPlan plan{.data = 64, .global_batch = 64};
  const std::int64_t share = (parameters + 63) / 64;
  const auto states = [&](int stage, int group = 0) {
    plan.zero_stage = stage;
    plan.shard_group = group;
    const MemoryUse use = resident(model, plan, settings);
    return std::array{use[MemoryClass::Weights].count(), use[MemoryClass::Gradients].count(),
                      use[MemoryClass::OptimizerStates].count()};
  };
  REQUIRE(states(0) == std::array{2 * parameters, 2 * parameters, 12 * parameters});
  REQUIRE(states(1) == std::array{2 * parameters, 2 * parameters, 12 * share});
  REQUIRE(states(2) == std::array{2 * parameters, 2 * share, 12 * share});
  REQUIRE(states(3) == std::array{2 * share, 2 * share, 12 * share});
  // Wider weights are the master copy: whole for layers, sharded at rest.
  plan.zero_stage = 2;
  REQUIRE(resident(model, plan, memory_settings("pytorch-fsdp"))[MemoryClass::Weights].count() ==
          2 * parameters + 4 * share);
  // Within groups of eight (HSDP).
  REQUIRE(states(3, 8)[0] == 2 * ((parameters + 7) / 8));
}

TEST_CASE("gradients that are not synchronised stay whole", "[memory]") {
  const Model model = shipped("llama-3-8b");
  const std::int64_t parameters = parameters_of(model).total();
  const MemorySettings settings = memory_settings("kempnerforge");
  ParallelPlan plan{.data = 8, .zero_stage = 3, .global_batch = 16};
  REQUIRE(resident(model, plan, settings)[MemoryClass::Gradients].count() == 4 * parameters);
  plan.global_batch = 8;  // One micro-batch.
  REQUIRE(resident(model, plan, settings)[MemoryClass::Gradients].count() == 2 * parameters / 8);
  // The embedding is whole on each tensor rank.
  const ParallelPlan two{.tensor = 2, .has_sequence_parallelism = true};
  MemorySettings split = settings;
  split.has_split_embedding = true;
  REQUIRE(resident(model, two, settings)[MemoryClass::Weights] -
              resident(model, two, split)[MemoryClass::Weights] ==
          Bytes(2 * model.vocabulary * model.hidden / 2));
}

TEST_CASE("one data rank beside tensor ranks is wrapped as several are", "[memory]") {
  // KempnerForge, distributed/setup.py: a mesh with tensor ranks always has data ranks.
  const Model model = shipped("llama-3-8b");
  MemorySettings settings = memory_settings("kempnerforge");
  ParallelPlan plan{
      .tensor = 2, .has_sequence_parallelism = true, .zero_stage = 3, .global_batch = 2};
  const MemoryUse use = resident(model, plan, settings);
  REQUIRE(use[MemoryClass::Gradients] == use[MemoryClass::Weights] * 2);
  settings.wraps_one_shard = false;
  REQUIRE(resident(model, plan, settings)[MemoryClass::Gradients] == use[MemoryClass::Weights]);
  settings.wraps_one_shard = true;
  plan.tensor = 1;  // One GPU has no mesh.
  const MemoryUse alone = resident(model, plan, settings);
  REQUIRE(alone[MemoryClass::Gradients] == alone[MemoryClass::Weights]);
}

TEST_CASE("DeepSpeed has groups of its own", "[memory]") {
  const Model model = shipped("gpt2-large");  // Its head is the embedding.
  const auto communicators = [&](const ParallelPlan& plan, bool has_groups, std::size_t rank) {
    MemorySettings settings;
    settings.has_deepspeed_groups = has_groups;
    const StepMemory memory = memory_of(model, plan, settings);
    const Bytes buffers = memory.ranks[rank].moments.back().use[MemoryClass::Communication];
    // 4 MiB and half a MiB, and 4,800 KiB (NCCL_BUFFSIZE, NCCL_LL_BUFFSIZE, NCCL_LL128_BUFFSIZE).
    return buffers.count() / ((mib(4) + kib(512) + kib(4800)).count() * settings.connections);
  };
  const ParallelPlan tensor_alone{.tensor = 4, .global_batch = 1};
  REQUIRE(communicators(tensor_alone, false, 0) == 1);
  REQUIRE(communicators(tensor_alone, true, 0) == 3);  // All ranks and the copy of the model.
  const ParallelPlan all{.tensor = 4, .pipeline = 3, .data = 2, .global_batch = 2};
  REQUIRE(communicators(all, false, 0) == 4);
  REQUIRE(communicators(all, true, 0) == 6);  // The tied embedding, too.
  REQUIRE(communicators(all, true, 1) == 5);
}

TEST_CASE("experts are sharded over the ranks that have them", "[memory]") {
  const Model model = shipped("mixtral-8x7b");
  const ParameterCount count = parameters_of(model);
  ParallelPlan plan{.data = 16, .expert = 8, .zero_stage = 1, .global_batch = 16};
  const MemoryUse use = resident(model, plan, {});
  const std::int64_t experts = count.experts / 8;
  const std::int64_t dense = count.total() - count.experts;
  REQUIRE(use[MemoryClass::Weights].count() == 2 * (dense + experts));
  REQUIRE(use[MemoryClass::OptimizerStates].count() == 12 * ((dense + 15) / 16 + experts / 2));
}

TEST_CASE("activations of the first rank are those of its layers alive", "[memory]") {
  const Model model = shipped("gpt-3-175b");
  const ParallelPlan plan{.tensor = 8,
                          .has_sequence_parallelism = true,
                          .pipeline = 8,
                          .schedule = &kInterleaved,
                          .chunks = 3,
                          .global_batch = 64,
                          .recompute = Recompute::Selective};
  const MemorySettings settings = memory_settings("megatron-2022");
  const StepMemory memory = memory_of(model, plan, settings);
  const std::int64_t layer = 34 * 2048 * 12288 / 8;
  // 31 chunks of four layers, and the mask of the embedding for each micro-batch in the first one.
  REQUIRE(max_activations(plan.pipeline_shape(), 0) == 31);
  const Bytes activations = memory.ranks.front().highest().use[MemoryClass::Activations];
  REQUIRE(activations.count() - 31 * 4 * layer == 16 * 2048 * 12288 / 8);
}

TEST_CASE("the highest moment of a profile is the peak, and it repeats", "[memory]") {
  const Model model = shipped("llama-2-7b");
  const ParallelPlan plan{.pipeline = 4, .global_batch = 16};
  const StepMemory memory = memory_of(model, plan);
  REQUIRE(memory.ranks.size() == 4);
  for (const RankMemory& rank : memory.ranks) {
    REQUIRE(rank.passes.size() == passes_of(plan.pipeline_shape(), rank.rank).size() + 1);
    for (const MemoryMoment& moment : rank.moments) {
      REQUIRE(moment.use.device() <= rank.highest().use.device());
      REQUIRE(moment.use.allocated() <= moment.use.reserved());
      REQUIRE(moment.use.reserved() <= moment.use.device());
    }
    REQUIRE(rank.highest().use.device() <= memory.highest().highest().use.device());
    // Nothing is kept behind the step.
    REQUIRE(rank.moments.back().use[MemoryClass::Activations].count() == 0);
  }
  REQUIRE(memory.ranks[1].moments.back().where() == "optimizer");
  REQUIRE(memory.ranks[0].moments.front().where().substr(0, 31) ==
          "forward of micro-batch 0, chunk");
}

TEST_CASE("a gathered layer and the next stand beside the shards", "[memory]") {
  const Model model = shipped("llama-3-8b");
  const ParallelPlan plan{.data = 8, .zero_stage = 3, .global_batch = 8};
  const std::int64_t layer = parameters_of(model, model.layers.front()).total();
  const std::int64_t embedding = model.vocabulary * model.hidden;
  const auto max = [&](int prefetched) {
    MemorySettings settings = memory_settings("pytorch-fsdp");
    settings.prefetched_units = prefetched;
    const StepMemory memory = memory_of(model, plan, settings);
    // The first forward: embedding and layers, no gradients yet.
    return memory.ranks.front().moments.front().use[MemoryClass::GatheredWeights].count();
  };
  // The last norm and the head come last, alone.
  REQUIRE(max(0) == 2 * (embedding + model.hidden));
  REQUIRE(max(2) == 2 * (embedding + model.hidden));
  REQUIRE(memory_of(model, {.zero_stage = 3})
              .ranks.front()
              .highest()
              .use[MemoryClass::GatheredWeights] == Bytes());
  REQUIRE(layer < embedding);
}

TEST_CASE("full recomputation trades kept layers for one at work", "[memory]") {
  const Model model = shipped("llama-3-70b");
  ParallelPlan plan{.tensor = 8, .has_sequence_parallelism = true, .sequence = 8192};
  const StepMemory none = memory_of(model, plan);
  plan.recompute = Recompute::Full;
  const StepMemory full = memory_of(model, plan);
  const MemoryUse& use = full.highest().highest().use;
  const std::int64_t hidden = 8192 * model.hidden / 8;
  REQUIRE(use[MemoryClass::Activations].count() == 80 * 2 * hidden + 4 * hidden);
  REQUIRE(use.device() < none.highest().highest().use.device());
}

TEST_CASE("both directions of DualPipe hold their own weights", "[memory]") {
  const Model model = shipped("gpt-3-175b");
  const ParallelPlan one{.pipeline = 4, .global_batch = 16};
  const ParallelPlan both{.pipeline = 4, .schedule = &kDualPipe, .chunks = 2, .global_batch = 16};
  const Bytes single = memory_of(model, one).ranks[1].highest().use[MemoryClass::Weights];
  REQUIRE(memory_of(model, both).ranks[1].highest().use[MemoryClass::Weights] == single * 2);
}

TEST_CASE("plans whose memory is not defined are refused with one line", "[memory]") {
  const Model model = shipped("llama-2-7b");
  const Model experts = shipped("mixtral-8x7b");
  require_refused({.tensor = 4}, experts,
                  "expected sequence parallelism or expert_tensor as tensor with experts, found "
                  "expert_tensor 1 and tensor 4");
  require_refused(
      {.data = 8, .expert = 4, .zero_stage = 3, .shard_group = 4, .global_batch = 8}, experts,
      "expected a shard group that divides the 2 ranks of an expert's gradient, found 4");
  REQUIRE_THROWS_AS(
      memory_of(experts, {.recompute = Recompute::Selective}, memory_settings("pytorch-fsdp")),
      ConfigError);
  REQUIRE_THROWS_MATCHES(
      memory_of(shipped("dit-xl-2"), {.sequence = 256, .recompute = Recompute::Selective},
                memory_settings("pytorch-fsdp")),
      ConfigError,
      Catch::Matchers::Message("memory: expected no selective recomputation of alternate products "
                               "with modulation, found both"));
  require_refused({.micro_batch = std::int64_t{1} << 24}, model,
                  "expected activations of at most 1 PB in a micro-batch, found 238 PB");
}

TEST_CASE("plans of every kind keep their order and leave nothing behind", "[memory]") {
  const Model dense = shipped("llama-2-7b");
  const Model experts = shipped("mixtral-8x7b");
  int plans = 0;
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    for (const int ranks : {2, 4, 8}) {
      for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
        ParallelPlan plan{.tensor = 2,
                          .has_sequence_parallelism = true,
                          .context = 2,
                          .pipeline = ranks,
                          .schedule = schedule,
                          .chunks = schedule->chunks.value_or(2),
                          .data = 4,
                          .global_batch = std::int64_t{4} * 4 * ranks,
                          .recompute = recompute};
        INFO(to_string(schedule) << " p=" << ranks << " recompute " << static_cast<int>(recompute));
        Bytes before = memory_of(dense, plan).highest().highest().use.device();
        for (plan.zero_stage = 1; plan.zero_stage <= 2; ++plan.zero_stage) {
          // Gradients of a unit stand beside the shards; a pipeline has enough of them.
          const StepMemory memory = memory_of(dense, plan);
          REQUIRE(memory.ranks.size() == static_cast<std::size_t>(ranks));
          const Bytes states = memory.ranks[1].moments.back().use[MemoryClass::OptimizerStates];
          REQUIRE(states < before);
          before = memory.highest().highest().use.device();
          ++plans;
        }
        plan.zero_stage = 1;
        plan.expert = 8;
        const StepMemory mixture = memory_of(experts, plan);
        REQUIRE(mixture.highest().highest().use[MemoryClass::Weights].count() > 0);
        ++plans;
      }
    }
  }
  REQUIRE(plans == static_cast<int>(pipeline_schedules().size()) * 3 * 3 * 3);
}

TEST_CASE("data sheets say GB for what devices report in GiB", "[memory]") {
  for (const auto& [data_sheet, mebibytes] :
       {std::pair{80, 81559}, std::pair{141, 143771}, std::pair{180, 183359}}) {
    const Bytes capacity = device_capacity(Bytes(data_sheet * std::int64_t{1'000'000'000}));
    REQUIRE(static_cast<double>(capacity.count()) ==
            Approx(static_cast<double>(mib(mebibytes).count())).epsilon(0.005));
  }
}

TEST_CASE("a verdict names the rank, the moment and what takes the memory", "[memory]") {
  const Model model = shipped("llama-2-7b");
  const StepMemory memory = memory_of(model, {});
  const std::string no = memory_verdict(memory, Bytes(80'000'000'000));
  REQUIRE(no.starts_with("out of memory: pipeline rank 0 needs"));
  REQUIRE(no.find("optimizer states 75.31") != std::string::npos);
  REQUIRE(memory_verdict(memory, gib(288)).starts_with("fits:"));
  const Bytes needed = memory.highest().highest().use.device();
  REQUIRE(memory_verdict(memory, needed).starts_with("fits:"));
  REQUIRE(memory_verdict(memory, needed - Bytes(1)).starts_with("fits without fragmentation:"));
}

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
  const Model model = shipped("llama-3-405b");
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
  const Model model = shipped("mixtral-8x7b");
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
          "[memory]") {
  const Model model = shipped("megatron-1.7b");
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

TEST_CASE("adapters alone have gradients and states, and a base of 4 bits is small", "[memory]") {
  Model model = shipped("llama-2-7b");
  model.adapters = Adapters{.rank = 16};
  const MemorySettings settings = memory_settings("pytorch-fsdp");
  const ParallelPlan plan{.recompute = Recompute::Full};
  const std::int64_t trained = 39'976'960;
  const MemoryUse lora = resident(model, plan, settings);
  REQUIRE(lora[MemoryClass::Gradients] == Bytes(trained) * settings.states.gradient);
  REQUIRE(lora[MemoryClass::OptimizerStates] == Bytes(trained) * settings.states.optimizer);
  REQUIRE(lora[MemoryClass::Weights] ==
          Bytes(6'738'415'616) * 2 + Bytes(trained) * settings.states.weight);
  model.adapters->is_quantised = true;
  const MemoryUse qlora = resident(model, plan, settings);
  REQUIRE(qlora[MemoryClass::Weights] < Bytes(4'100'000'000));
  REQUIRE(qlora[MemoryClass::Gradients] == lora[MemoryClass::Gradients]);
}

}  // namespace trainyard
