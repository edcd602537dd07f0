// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/workload.h"

#include <string>

#include "parallelism/model/pipeline_schedule.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

const std::filesystem::path kWorkloadModels = kConfigsFolder / "workloads" / "models";

const std::string kText =
    "title: T\n"
    "source: s\n"
    "model: gpt-3-175b\n"
    "software: mine\n"
    "plan: {tensor: 8, pipeline: 8}\n"
    "batch: {micro: 1, global: 64, sequence: 2048}\n";

Workload workload_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  ConfigDocument document = ConfigDocument::parse(text, "w.yaml");
  return build_workload(document, kWorkloadModels, settings);
}

void require_refused(const std::string& text, const std::vector<std::string>& settings,
                     const std::string& message) {
  INFO(message);
  REQUIRE_THROWS_MATCHES(workload_of(text, settings), ConfigError,
                         Catch::Matchers::Message(message));
}

std::string replaced(const std::string& part, const std::string& by) {
  std::string text = kText;
  text.replace(text.find(part), part.size(), by);
  return text;
}

}  // namespace

TEST_CASE("a workload names its model and says how it is spread", "[workload]") {
  const Workload small = workload_of(kText);
  REQUIRE(small.name == "w");
  REQUIRE(small.model.name == "gpt-3-175b");
  REQUIRE(small.model.layers.size() == 96);
  REQUIRE(small.software == "mine");
  REQUIRE(small.precision == Precision::Bf16);
  REQUIRE(small.data_fills_cluster);
  REQUIRE_FALSE(small.overlap.tensor.has_value());
  REQUIRE(plan_for(small, 512).data == 8);

  const Workload full = workload_of(replaced(
      "plan: {tensor: 8, pipeline: 8}\n",
      "precision: fp8\noverlap: {tensor: true, data: false, pipeline: true}\n"
      "plan: {tensor: 4, sequence_parallel: true, context: 2, context_kind: alltoall,\n"
      "  pipeline: 4, schedule: interleaved, chunks: 2, data: 2, expert: 1, expert_tensor: 1,\n"
      "  zero_stage: 2, shard_group: 2, recompute: selective,\n"
      "  stage_layers: [11, 12, 12, 13, 12, 12, 12, 12],\n"
      "  order: [tensor, data, context, pipeline]}\n"));
  const ParallelPlan plan = plan_for(full, 64);
  REQUIRE(full.precision == Precision::Fp8);
  REQUIRE(full.overlap.tensor == true);
  REQUIRE(full.overlap.data == false);
  REQUIRE(full.overlap.pipeline == true);
  REQUIRE(plan.has_sequence_parallelism);
  REQUIRE(plan.context_kind == ContextParallelism::AllToAll);
  REQUIRE(plan.schedule == &kInterleaved);
  REQUIRE(plan.chunks == 2);
  REQUIRE(plan.zero_stage == 2);
  REQUIRE(plan.shards() == 2);
  REQUIRE(plan.recompute == Recompute::Selective);
  REQUIRE(plan.stage_layers.front() == 11);
  REQUIRE(plan.order[1] == PlanAxis::Data);
  REQUIRE(plan.micro_batches() == 32);
}

TEST_CASE("a workload says what is on the host, and what servers do", "[workload]") {
  const auto plan_of = [](const std::string& plan) {
    return workload_of(kText, {"plan=" + plan}).plan;
  };
  REQUIRE_FALSE(plan_of("{tensor: 8}").offload.any());
  REQUIRE_FALSE(plan_of("{tensor: 8}").servers);
  const PlanOffload offload = plan_of("{offload: {optimizer: true}}").offload;
  REQUIRE(offload.optimizer);
  REQUIRE_FALSE(offload.activations);
  const ParameterServers plain = *plan_of("{servers: {count: 3}}").servers;
  REQUIRE(plain.count == 3);
  REQUIRE(plain.bound == 0);
  REQUIRE_FALSE(plain.on_workers);
  const ParameterServers stale =
      *plan_of("{servers: {place: workers, consistency: stale, bound: 4, steps: 2}}").servers;
  REQUIRE(stale.bound == 4);
  REQUIRE(stale.on_workers);
  REQUIRE(stale.steps == 2);
  REQUIRE_FALSE(plan_of("{servers: {consistency: asynchronous}}").servers->bound);
  require_refused(kText, {"plan={servers: {bound: 1}}"},
                  "--set plan={servers: {bound: 1}}: plan.servers.bound: expected a bound with "
                  "consistency: stale only, found \"1\"");
}

TEST_CASE("a workload says how gradients are compressed", "[workload]") {
  const auto compression_with = [&](const std::string& text) {
    return workload_of(kText, {"plan.gradient_compression=" + text}).plan.compression;
  };
  REQUIRE_FALSE(workload_of(kText).plan.compression);
  REQUIRE(compression_with("{method: bf16}")->method == CompressionMethod::Bf16);
  REQUIRE(compression_with("{method: powersgd}")->rank == 1);
  REQUIRE(compression_with("{method: powersgd, rank: 4}")->rank == 4);
  REQUIRE(compression_with("{method: topk, ratio: 0.01}")->ratio == 0.01);
  const std::string key = "plan.gradient_compression";
  const auto refuse = [&](const std::string& text, const std::string& message) {
    const std::string setting = key + "=" + text;
    require_refused(kText, {setting}, "--set " + setting + ": " + key + message);
  };
  refuse("{method: fp16, rank: 2}",
         ".rank: expected a rank with method: powersgd only, found \"2\"");
  refuse("{method: powersgd, ratio: 0.5}",
         ".ratio: expected a ratio with method: topk only, found \"0.5\"");
  refuse("{method: topk}", ": missing key \"ratio\"");
}

TEST_CASE("settings change a workload and its model", "[workload]") {
  const Workload changed = workload_of(
      kText, {"plan.tensor=4", "model.layers.0.count=8", "batch.global=128", "precision=fp16"});
  REQUIRE(changed.plan.tensor == 4);
  REQUIRE(changed.model.layers.size() == 8);
  REQUIRE(changed.model.name == "gpt-3-175b");
  REQUIRE(changed.plan.global_batch == 128);
  REQUIRE(changed.precision == Precision::Fp16);
  const Workload other = workload_of(kText, {"model=llama-3-8b"});
  REQUIRE(other.model.name == "llama-3-8b");
  REQUIRE(other.model.layers.size() == 32);
}

TEST_CASE("without a global batch each GPU has a micro-batch", "[workload]") {
  const Workload workload = workload_of(
      "title: T\nsource: s\nmodel: llama-3-8b\nsoftware: mine\nplan: {tensor: 2}\n"
      "batch: {micro: 3, sequence: 2048}\n");
  REQUIRE(batched_plan(workload, 16).global_batch == 48);
  const ParallelPlan plan = plan_for(workload, 16);
  REQUIRE(plan.global_batch == 48);
  REQUIRE(plan.micro_batches() == 2);
  REQUIRE(batched_plan(workload_of(kText), 16).global_batch == 64);
}

TEST_CASE("a model may stand in the workload", "[workload]") {
  const Workload inline_model = workload_of(
      replaced("model: gpt-3-175b\n",
               "model:\n  title: M\n  hidden: 64\n  vocabulary: 100\n  layers:\n    - count: 8\n"
               "      attention: {heads: 8, head_size: 8}\n"
               "      feed_forward: {size: 256, gated: false}\n"));
  REQUIRE(inline_model.model.name == "w");
  REQUIRE(inline_model.model.hidden == 64);
}

TEST_CASE("a model of images says how long a sequence is", "[workload]") {
  const std::string text =
      "title: T\nsource: s\nmodel: vit-large-16\nsoftware: mine\nplan: {}\n"
      "batch: {micro: 8, global: 64}\n";
  REQUIRE(workload_of(text).plan.sequence == 197);
  REQUIRE(workload_of(text, {"batch.sequence=197"}).plan.sequence == 197);
  REQUIRE(
      workload_of(text, {"model.patches.image=384", "model.learned_positions=577"}).plan.sequence ==
      577);
  require_refused(
      text, {"batch.sequence=256"},
      "--set batch.sequence=256: batch.sequence: expected no sequence, or 197, the tokens "
      "of an image of ViT-L/16 at 224, found \"256\"");
  require_refused(replaced(", sequence: 2048", ""), {},
                  "w.yaml:6:8: batch: missing key \"sequence\"");
}

TEST_CASE("mistakes in workloads are one line each", "[workload]") {
  require_refused(kText, {"plan.tensr=2"},
                  "--set plan.tensr=2: plan: unknown key \"tensr\"; did you mean \"tensor\"?");
  require_refused(kText, {"tensor"}, "--set: expected key.path=value, found \"tensor\"");
  require_refused(replaced("batch: {micro: 1", "batch: {micro: 0"), {},
                  "w.yaml:6:16: batch.micro: expected a whole number from 1 to 4294967296, found "
                  "\"0\"");
  require_refused(kText, {"plan.order=[tensor, tensor, data, pipeline]"},
                  "--set plan.order=[tensor, tensor, data, pipeline]: plan.order[1]: expected each "
                  "of tensor, context, data and pipeline once, found \"tensor\"");
  require_refused(kText, {"plan.order=[tensor]"},
                  "--set plan.order=[tensor]: plan.order: expected tensor, context, data and "
                  "pipeline in some order, found 1");
}

TEST_CASE("a workload of another tool is named as one", "[workload]") {
  const auto complaint = [](const std::string& name) -> std::string {
    try {
      (void)load_workload(kConfigsFolder / "workloads" / "imported" / name, kWorkloadModels);
    } catch (const ConfigError& problem) {
      const std::string text = problem.what();
      return text.substr(text.find(": expected"));
    }
    return "no error";
  };
  REQUIRE(complaint("dissemination-8.goal") ==
          ": expected a workload in YAML, with model and plan, found goal of another tool, which "
          "trainyard step alone runs");
  REQUIRE(complaint("chakra-2").find("found chakra of another tool") != std::string::npos);
  REQUIRE(complaint("transformer-tp2-dp4.txt").find("found simai of") != std::string::npos);
}

TEST_CASE("a plan that does not fit the GPUs is refused with its numbers", "[workload]") {
  REQUIRE_THROWS_MATCHES(
      plan_for(workload_of(kText), 96), ConfigError,
      Catch::Matchers::Message("plan: expected tensor x context x pipeline to divide the number of "
                               "GPUs, found 8 x 1 x 8 = 64 and 96"));
  REQUIRE_THROWS_MATCHES(
      plan_for(workload_of(kText, {"plan={tensor: 50000, context: 50000, pipeline: 50000, "
                                   "data: 50000}"}),
               64),
      ConfigError,
      Catch::Matchers::Message(
          "plan: expected tensor x context x pipeline x data to be the number of GPUs, found 50000 "
          "x 50000 x 50000 x 50000 = 6250000000000000000 and 64"));
  REQUIRE_THROWS_MATCHES(
      plan_for(workload_of(kText, {"plan.stage_layers=[96]"}), 64), ConfigError,
      Catch::Matchers::Message("plan: expected the layers of 8 stages, found 1"));
  REQUIRE_THROWS_MATCHES(
      plan_for(workload_of(kText, {"plan.stage_layers=[12,12,12,12,12,12,12,11]"}), 64),
      ConfigError,
      Catch::Matchers::Message("plan: expected stages with the 96 layers of GPT-3 175B, with the "
                               "vocabulary padded as Megatron does, found 95"));
}

TEST_CASE("one expert rank gets no more than all tokens", "[workload]") {
  Workload workload = load_workload(kConfigsFolder / "workloads" / "mixtral-8x7b.yaml",
                                    kConfigsFolder / "workloads" / "models",
                                    {"plan={expert: 4}", "routing.imbalance=4"});
  REQUIRE(plan_for(workload, 64).expert == 4);
  workload.routing.imbalance = 4.5;
  REQUIRE_THROWS_MATCHES(
      plan_for(workload, 64), ConfigError,
      Catch::Matchers::Message("routing: expected an imbalance of at most the expert ranks, as one "
                               "cannot get more than all tokens, found 4.5 and 4"));
}

TEST_CASE("the shipped workloads fit the machines that they name", "[workload]") {
  const auto shipped = [](const std::string& name) {
    return load_workload(kConfigsFolder / "workloads" / (name + ".yaml"), kWorkloadModels);
  };
  REQUIRE(plan_for(shipped("gpt-3-175b"), 1024).micro_batches() == 192);
  REQUIRE(plan_for(shipped("llama-3-405b"), 16384).data == 128);
  REQUIRE(plan_for(shipped("mixtral-8x7b"), 64).data == 2);
  REQUIRE(plan_for(shipped("bert-large"), 8).data == 8);
  REQUIRE(plan_for(shipped("vit-large-16"), 8).micro_batches() == 4);
  REQUIRE(plan_for(shipped("dit-xl-2"), 8).data == 8);
}

TEST_CASE("a precision of 32 bits makes elements of the plan wide", "[workload]") {
  const std::filesystem::path file = kConfigsFolder / "workloads/gpt-3-175b.yaml";
  const std::filesystem::path models = kConfigsFolder / "workloads/models";
  REQUIRE(load_workload(file, models).plan.element_bytes == 2);
  REQUIRE(load_workload(file, models, {"precision=tf32"}).plan.element_bytes == 4);
  REQUIRE(load_workload(file, models, {"precision=fp32"}).precision == Precision::Fp32);
}

TEST_CASE("a workload may train adapters beside frozen weights", "[workload]") {
  const std::string text =
      "title: T\nsource: s\nmodel: llama-2-7b\nsoftware: mine\nplan: {}\n"
      "batch: {micro: 1, global: 64, sequence: 2048}\n";
  REQUIRE_FALSE(workload_of(text).model.adapters.has_value());
  const Workload workload = workload_of(
      text + "adapters: {rank: 16, targets: [query, down], base: nf4}\n", {"adapters.rank=8"});
  REQUIRE(workload.model.adapters->rank == 8);
  REQUIRE(workload.model.adapters->targets ==
          std::vector{AdapterTarget::Query, AdapterTarget::Down});
  REQUIRE(workload.model.adapters->is_quantised);
  require_refused(text, {"adapters={rank: 0}"},
                  "--set adapters={rank: 0}: adapters.rank: expected a whole number from 1 to "
                  "65536, found \"0\"");
  require_refused(
      text, {"adapters={rank: 1, targets: [query, query]}"},
      "--set adapters={rank: 1, targets: [query, query]}: adapters.targets[1]: expected "
      "each target once, found \"query\"");
  require_refused(kText, {"adapters={rank: 1, targets: [gate]}"},
                  "--set adapters={rank: 1, targets: [gate]}: adapters.targets[0]: expected a "
                  "matrix that layers without a gate have, found \"gate\"");
  require_refused(
      text, {"model=mixtral-8x7b", "adapters={rank: 1}"},
      "--set adapters={rank: 1}: adapters: expected no adapters for models with experts "
      "or latent attention, found Mixtral 8x7B");
}

}  // namespace trainyard
