// SPDX-License-Identifier: Apache-2.0
// What a row ran: plans from its fields, what is missing, which numbers clash, and the time of a
// step from each kind of figure.
#include "calibration/training/training_run.h"
#include "parallelism/model/pipeline_schedule.h"
#include "support/paths.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/catch.h"

namespace trainyard {
namespace {

const std::filesystem::path kRunRoot = source_dir();
const std::filesystem::path kModels = kRunRoot / "configs" / "workloads" / "models";

// 32 ranks: TP 2 x PP 4 x DP 4, micro-batch 1, 8 micro-batches.
TrainingRow complete_row() {
  TrainingRow row{.id = "a", .fields = {}, .measured = {.step_time_s = 2.0}};
  row.fields.model = {.form = ModelForm::Gpt,
                      .layers = 24,
                      .hidden = 2304,
                      .heads = 24,
                      .feed_forward_ratio = 4,
                      .vocabulary = 51200,
                      .sequence = 2048};
  row.fields.machine = {.gpu = "A100-SXM-80GB", .gpus = 32, .gpus_per_node = 8};
  row.fields.plan = {.tensor = 2,
                     .sequence_parallelism = true,
                     .context = 1,
                     .pipeline = 4,
                     .chunks = 1,
                     .zero_stage = 1,
                     .micro_batch = 1,
                     .global_batch = 32,
                     .recompute = Recompute::Full};
  row.fields.software.precision = Precision::Fp16;
  return row;
}

TrainingResolution resolved_run(const TrainingRow& row) {
  ModelFolder models(kModels);
  return resolve(row, models);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a complete row gives a checked plan", "[training]") {
  const TrainingResolution result = resolved_run(complete_row());
  REQUIRE(result.missing == Names{});
  REQUIRE(result.clash.empty());
  const TrainingRun& run = result.run.value();
  REQUIRE(run.plan.data == 4);
  REQUIRE(run.plan.micro_batches() == 8);
  REQUIRE(run.plan.schedule == &kOneForwardOneBackward);
  REQUIRE(run.plan.has_sequence_parallelism);
  REQUIRE(run.plan.sequence == 2048);
  REQUIRE(run.model.layers.size() == 24);
  REQUIRE(run.measured_s == 2.0);
  REQUIRE_FALSE(run.has_experts());
}

TEST_CASE("chunks make 1F1B interleaved", "[training]") {
  TrainingRow row = complete_row();
  row.fields.plan.chunks = 3;
  REQUIRE(resolved_run(row).run->plan.schedule == &kInterleaved);
  REQUIRE(resolved_run(row).run->plan.chunks == 3);
  row.fields.plan.schedule = &kZeroBubbleV;
  row.fields.plan.chunks.reset();
  REQUIRE(resolved_run(row).run->plan.chunks == 2);
}

TEST_CASE("two of micro-batch, global batch and micro-batches give the third", "[training]") {
  TrainingRow row = complete_row();
  row.fields.plan.micro_batches = 8;
  row.fields.plan.micro_batch.reset();
  REQUIRE(resolved_run(row).run->plan.micro_batch == 1);
  row.fields.plan.micro_batch = 2;
  row.fields.plan.global_batch.reset();
  REQUIRE(resolved_run(row).run->plan.global_batch == 64);
  row.fields.plan.global_batch = 32;
  REQUIRE(resolved_run(row).clash ==
          "expected micro-batch x data x micro-batches to be the global batch, found 2 x 4 x 8 and "
          "32");
  row.fields.plan.micro_batch.reset();
  row.fields.plan.global_batch = 33;
  REQUIRE(resolved_run(row).clash ==
          "expected data x micro-batches to divide the global batch, found 4 x 8 and 33");
}

TEST_CASE("what a row does not say is listed, not guessed", "[training]") {
  const auto missing = [](auto change) {
    TrainingRow row = complete_row();
    change(row.fields);
    return resolved_run(row).missing;
  };
  using Row = TrainingFields;
  REQUIRE(missing([](Row& row) { row.plan.tensor.reset(); }) == Names{"parallel.tp"});
  REQUIRE(missing([](Row& row) { row.plan.context.reset(); }) == Names{"parallel.cp"});
  REQUIRE(missing([](Row& row) { row.plan.chunks.reset(); }) == Names{"parallel.vpp"});
  REQUIRE(missing([](Row& row) { row.plan.zero_stage.reset(); }) == Names{"parallel.zero"});
  REQUIRE(missing([](Row& row) { row.plan.micro_batch.reset(); }) == Names{"parallel.micro_batch"});
  REQUIRE(missing([](Row& row) { row.plan.recompute.reset(); }) == Names{"parallel.recompute"});
  REQUIRE(missing([](Row& row) {
            row.plan.recompute.reset();
            row.plan.other_recompute = "norm, act";
          }) == Names{"parallel.recompute (norm, act)"});
  REQUIRE(missing([](Row& row) { row.machine.gpu.reset(); }) == Names{"cluster.gpu"});
  REQUIRE(missing([](Row& row) { row.software.precision.reset(); }) == Names{"parallel.precision"});
  REQUIRE(missing([](Row& row) { row.plan.sequence_parallelism.reset(); }) == Names{"parallel.sp"});
}

TEST_CASE("fields that a plan has no use for are not missing", "[training]") {
  TrainingRow row = complete_row();
  row.fields.machine.gpus = 1;
  row.fields.plan = {.tensor = 1,
                     .context = 1,
                     .pipeline = 1,
                     .micro_batch = 2,
                     .global_batch = 8,
                     .recompute = Recompute::None};
  REQUIRE(resolved_run(row).missing == Names{});
  REQUIRE(resolved_run(row).run->plan.data == 1);
}

TEST_CASE("experts need expert ranks", "[training]") {
  TrainingRow row = complete_row();
  row.fields.model = {.file = "mixtral-8x7b", .sequence = 4096};
  REQUIRE(resolved_run(row).missing == Names{"parallel.ep", "parallel.etp"});
  row.fields.plan.expert = 8;
  row.fields.plan.expert_tensor = 1;
  REQUIRE(resolved_run(row).run->has_experts());
}

TEST_CASE("plans that do not fit the GPUs or the model clash in one line", "[training]") {
  TrainingRow row = complete_row();
  row.fields.plan.data = 8;
  REQUIRE(resolved_run(row).clash ==
          "expected tensor x context x pipeline x data to be the number of GPUs, found 2 x 1 x 4 x "
          "8 = 64 and 32");
  row = complete_row();
  row.fields.plan.global_batch = 33;
  REQUIRE(resolved_run(row).clash ==
          "expected a global batch that micro-batch x data divide, found 33 and 1 x 4");
}

TEST_CASE("sharding within nodes is a group of a node's size", "[training]") {
  TrainingRow row = complete_row();
  row.fields.plan.tensor = 1;
  row.fields.plan.pipeline = 1;
  row.fields.plan.zero_stage = 3;
  row.fields.plan.shards_within_node = true;
  REQUIRE(resolved_run(row).run->plan.shard_group == 8);
}

TEST_CASE("the time of a step follows from throughput", "[training]") {
  const TrainingRun run = resolved_run(complete_row()).run.value();
  const auto time = [&](const TrainingMeasurement& measured) {
    return measured_seconds(measured, run.model, run.plan, run.gpus).value();
  };
  // 32 sequences of 2048 tokens: 65536 tokens.
  REQUIRE(time({.tokens_per_s = 131072.0}) == 0.5);
  REQUIRE(time({.tokens_per_s_per_gpu = 1024.0}) == 2.0);
  REQUIRE(time({.samples_per_s_per_gpu = 0.25}) == 4.0);
  // The printed time wins over what it was computed from.
  REQUIRE(time({.step_time_s = 3.0, .tokens_per_s = 131072.0}) == 3.0);
  REQUIRE_FALSE(measured_seconds({}, run.model, run.plan, run.gpus).has_value());
  REQUIRE_FALSE(
      measured_seconds({.tflops_per_gpu = 140.0}, run.model, run.plan, run.gpus).has_value());
}

TEST_CASE("the time of a step follows from FLOP/s by their convention", "[training]") {
  const TrainingRun run = resolved_run(complete_row()).run.value();
  // 65536 tokens on 32 GPUs are 2048 each. By hand, of h 2304, L 24, V 51200, s 2048: linear 24 h^2
  // L = 3057647616, attention 4 h s L = 452984832, logits 2 V h = 235929600 operations forward.
  const double linear = 3057647616.0;
  const double attention = 452984832.0;
  const double logits = 235929600.0;
  const std::map<FlopsConvention, double> of_a_token = {
      {FlopsConvention::HardwareFullRecompute, 4 * linear + 4 * attention + 3 * logits},
      {FlopsConvention::Model, 3 * (linear + attention + logits)},
      {FlopsConvention::HardwareSelectiveRecompute, 3 * (linear + 2 * attention + logits)},
      {FlopsConvention::ModelCausal, 3 * (linear + attention / 2 + logits)},
  };
  for (const auto& [convention, flops] : of_a_token) {
    CAPTURE(std::string(to_string(convention)));
    const double expected = flops * 2048 / 140e12;
    const TrainingMeasurement measured{.tflops_per_gpu = 140.0, .convention = convention};
    REQUIRE(measured_seconds(measured, run.model, run.plan, run.gpus).value() == Approx(expected));
    const TrainingMeasurement utilisation{
        .mfu_percent = 40.0, .peak_tflops = 350.0, .convention = convention};
    REQUIRE(measured_seconds(utilisation, run.model, run.plan, run.gpus).value() ==
            Approx(expected));
  }
}

}  // namespace trainyard
