// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/parallel_plan.h"

#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

Model shipped_plan(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

// GPT-3 175B on 1,024 GPUs as in arXiv 2104.04473.
ParallelPlan gpt_plan() {
  return {.tensor = 8, .pipeline = 16, .data = 8, .micro_batch = 1, .global_batch = 1536};
}

void require_refused(const ParallelPlan& plan, const Model& model, int gpus,
                     const std::string& message) {
  INFO(message);
  REQUIRE_THROWS_MATCHES(check(plan, model, gpus), ConfigError,
                         Catch::Matchers::Message("plan: " + message));
}

}  // namespace

TEST_CASE("published plans pass", "[plan]") {
  check(gpt_plan(), shipped_plan("gpt-3-175b"), 1024);
  REQUIRE(gpt_plan().micro_batches() == 192);
  // Llama 3 405B on 16,384 GPUs, arXiv 2407.21783, table 4.
  const ParallelPlan llama{.tensor = 8,
                           .has_sequence_parallelism = true,
                           .pipeline = 16,
                           .data = 128,
                           .zero_stage = 1,
                           .global_batch = 2048,
                           .sequence = 8192};
  check(llama, shipped_plan("llama-3-405b"), 16384);
  REQUIRE(llama.tokens() == 8192);
  const ParallelPlan long_context{.tensor = 8,
                                  .context = 16,
                                  .pipeline = 16,
                                  .data = 8,
                                  .global_batch = 128,
                                  .sequence = 131072};
  check(long_context, shipped_plan("llama-3-405b"), 16384);
  REQUIRE(long_context.gradient_ranks() == 128);
  // Mixtral 8x7B on 64 GPUs.
  const ParallelPlan mixtral{
      .tensor = 8, .context = 4, .data = 2, .expert = 4, .global_batch = 64, .sequence = 4096};
  check(mixtral, shipped_plan("mixtral-8x7b"), 64);
  REQUIRE(mixtral.expert_gradient_ranks() == 16);
}

TEST_CASE("plans whose numbers clash are refused with these numbers", "[plan]") {
  const Model gpt = shipped_plan("gpt-3-175b");
  const Model mixtral = shipped_plan("mixtral-8x7b");
  const auto changed = [](auto change) {
    ParallelPlan plan = gpt_plan();
    change(plan);
    return plan;
  };
  require_refused(gpt_plan(), gpt, 1000,
                  "expected tensor x context x pipeline x data to be the number of GPUs, found 8 x "
                  "1 x 16 x 8 = 1024 and 1000");
  require_refused(changed([](ParallelPlan& plan) { plan.global_batch = 1500; }), gpt, 1024,
                  "expected a global batch that micro-batch x data divide, found 1500 and 1 x 8");
  require_refused(
      changed([](ParallelPlan& plan) { plan.sequence = 4096; }), gpt, 1024,
      "expected a sequence of at most 2048 tokens, the learned positions of GPT-3 175B, "
      "with the vocabulary padded as Megatron does, found 4096");
  require_refused(
      changed([](ParallelPlan& plan) { plan.global_batch = std::int64_t{1} << 32; }), gpt, 1024,
      "expected at most 1000000 micro-batches, found 536870912, a global batch of 4294967296 over "
      "micro-batch x data of 1 x 8");
  check(changed([](ParallelPlan& plan) { plan.global_batch = 8'000'000; }), gpt, 1024);
  require_refused(changed([](ParallelPlan& plan) { plan.shard_group = 4; }), gpt, 1024,
                  "expected a ZeRO stage of 1 to 3 with a shard group of 4, found 0");
  require_refused(
      changed([](ParallelPlan& plan) { plan.expert = 2; }), gpt, 1024,
      "expected expert and expert_tensor of 1, as GPT-3 175B, with the vocabulary padded "
      "as Megatron does has no experts, found 2 and 1");
  require_refused({.global_batch = 1, .sequence = 256}, shipped_plan("vit-large-16"), 1,
                  "expected a sequence of 197 tokens, an image of ViT-L/16 at 224, found 256");
  require_refused(
      {.tensor = 2, .has_sequence_parallelism = true, .global_batch = 1, .sequence = 197},
      shipped_plan("vit-large-16"), 2,
      "expected tensor to divide the tokens of a rank's sequence, found 2 and 197");
  require_refused({.tensor = 7, .global_batch = 1}, gpt, 7,
                  "expected tensor to divide the heads, found 7 and 96");
  require_refused({.context = 3, .global_batch = 1}, gpt, 3,
                  "expected context to divide the sequence, found 3 and 2048");
  require_refused(
      {.tensor = 2, .context = 8, .context_kind = ContextParallelism::AllToAll, .global_batch = 1},
      mixtral, 16,
      "expected tensor x context to divide the heads of keys and values, found 16 and 8");
  require_refused({.has_sequence_parallelism = true}, gpt, 1,
                  "expected tensor above 1 with sequence parallelism, found 1");
  require_refused({.pipeline = 128, .global_batch = 1}, gpt, 128,
                  "expected at least one layer for each of 128 stages, found 96 layers");
  require_refused({.data = 16, .expert = 16, .global_batch = 16}, mixtral, 16,
                  "expected expert to divide the number of experts, found 16 and 8");
  require_refused(
      {.data = 2, .expert = 4, .global_batch = 2}, mixtral, 2,
      "expected expert x expert_tensor to divide tensor x context x data, found 4 and 2");
}

TEST_CASE("compressed are whole gradients on GPUs alone", "[plan]") {
  Model model;
  const auto refuse = [&](ParallelPlan plan, const std::string& message) {
    plan.data = 2;
    plan.global_batch = 2;
    plan.compression = GradientCompression{.method = CompressionMethod::PowerSgd};
    REQUIRE_THROWS_MATCHES(check(plan, model, 2), ConfigError, Catch::Matchers::Message(message));
  };
  refuse({.zero_stage = 1}, "plan: expected zero_stage 0 with gradient_compression, found 1");
  refuse({.servers = ParameterServers()},
         "plan: expected no parameter servers with gradient_compression, found them");
  refuse({.offload = {.optimizer = true}},
         "plan: expected no optimizer on the host with gradient_compression, found it");
  model.adapters = Adapters{.rank = 8};
  refuse({}, "plan: expected another gradient_compression than powersgd with adapters, found it");
}

TEST_CASE("adapters take schedules with whole backward passes", "[plan]") {
  Model model = shipped_plan("llama-2-7b");
  model.adapters = Adapters{.rank = 8};
  ParallelPlan plan{.pipeline = 2, .micro_batch = 1, .global_batch = 8};
  check(plan, model, 2);
  const auto refused = [&](const std::string& message) {
    REQUIRE_THROWS_MATCHES(check(plan, model, 2), ConfigError, Catch::Matchers::Message(message));
  };
  plan.servers = ParameterServers();
  refused("plan: expected no parameter servers with adapters, found them");
  plan.schedule = &kZeroBubbleH1;
  refused(
      "plan: expected a schedule that does not split the backward pass with adapters, found "
      "zb-h1");
}

}  // namespace trainyard
