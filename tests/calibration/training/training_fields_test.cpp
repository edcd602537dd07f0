// SPDX-License-Identifier: Apache-2.0
// Fields of training rows: what sources write, and what an assumption may fill in.
#include "support/catch.h"

#include <string>

#include "calibration/training/training_fields.h"
#include "parallelism/model/pipeline_schedule.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

TrainingFields fields_of(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "f.yaml");
  TrainingFields fields;
  read_fields(document.root(), fields, training_fields);
  document.finish();
  return fields;
}

TrainingFields plan_of(const std::string& text) {
  return fields_of("parallel: {" + text + "}");
}

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(fields_of(text));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("fields of a training row are absent where nothing is said", "[training]") {
  const TrainingFields fields = fields_of("model: {layers: 24}");
  REQUIRE(fields.model.layers == 24);
  REQUIRE_FALSE(fields.model.hidden.has_value());
  REQUIRE_FALSE(fields.plan.context.has_value());
  REQUIRE_FALSE(fields.plan.recompute.has_value());
  REQUIRE_FALSE(fields.software.precision.has_value());
}

TEST_CASE("precisions are read as sources write them", "[training]") {
  const auto precision = [](const std::string& text) {
    return *plan_of("precision: \"" + text + "\"").software.precision;
  };
  REQUIRE(precision("bf16 (fp32 grad accumulation)") == Precision::Bf16);
  REQUIRE(precision("bfloat16") == Precision::Bf16);
  REQUIRE(precision("fp16 mixed") == Precision::Fp16);
  REQUIRE(precision("FP8-CS") == Precision::Fp8);
  REQUIRE(precision("FP8-MX") == Precision::Mxfp8);
  REQUIRE(precision("MXFP8") == Precision::Mxfp8);
  REQUIRE(precision("float8 tensorwise") == Precision::Fp8);
  REQUIRE(precision("NVFP4") == Precision::Nvfp4);
  REQUIRE(precision("tf32") == Precision::Tf32);
  REQUIRE(precision("fp32") == Precision::Fp32);
  REQUIRE(error_of("parallel: {precision: int4}") ==
          "f.yaml:1:23: parallel.precision: expected a precision such as bf16, fp16, fp8, mxfp8, "
          "nvfp4, tf32, fp32, found \"int4\"");
}

TEST_CASE("adapters of a row have a rank and the matrices beside which they stand", "[training]") {
  const ModelFields all = fields_of("model: {lora_rank: 16}").model;
  REQUIRE(all.adapter_rank == 16);
  REQUIRE_FALSE(all.adapter_targets.has_value());
  const ModelFields some = fields_of("model: {lora_rank: 16, lora_targets: [query, down]}").model;
  REQUIRE(some.adapter_targets ==
          std::vector<AdapterTarget>{AdapterTarget::Query, AdapterTarget::Down});
  REQUIRE(error_of("model: {lora_targets: [bias]}").find("found \"bias\"") != std::string::npos);
}

TEST_CASE("schedules are read as sources write them", "[training]") {
  REQUIRE(plan_of("schedule: 1F1B (interleaved where vpp is given)").plan.schedule ==
          &kOneForwardOneBackward);
  REQUIRE(plan_of("schedule: 1F1B-I").plan.schedule == &kInterleaved);
  REQUIRE(plan_of("schedule: ZB-2p").plan.schedule == &kZeroBubbleH2);
  REQUIRE(error_of("parallel: {schedule: fast}").find("expected one of 1f1b, gpipe, ") !=
          std::string::npos);
}

TEST_CASE("sharding is read in the words of each framework", "[training]") {
  REQUIRE(plan_of("fsdp: 0").plan.zero_stage == std::nullopt);
  const PlanFields megatron = plan_of("fsdp: 64").plan;
  REQUIRE(megatron.zero_stage == 3);
  REQUIRE(megatron.shard_group == 64);
  REQUIRE(plan_of("fsdp: true").plan.zero_stage == 3);
  REQUIRE(plan_of("zero: 3, sharding: HSDP").plan.shards_within_node == true);
  REQUIRE(plan_of("zero: 3, sharding: FULL_SHARD").plan.shards_within_node == false);
  REQUIRE(plan_of("zero: 1, zero1_group: 8").plan.shard_group == 8);
  REQUIRE(plan_of("zero: 1, zero1_group: all dp ranks").plan.shard_group == std::nullopt);
}

TEST_CASE("a recomputation without a model of it is kept in its words", "[training]") {
  REQUIRE(plan_of("recompute: selective (attention core)").plan.recompute == Recompute::Selective);
  const PlanFields plan = plan_of("recompute: \"norm, act\"").plan;
  REQUIRE_FALSE(plan.recompute.has_value());
  REQUIRE(plan.other_recompute == "norm, act");
}

TEST_CASE("an assumption fills in what is missing and nothing else", "[training]") {
  TrainingFields fields = fields_of("{model: {layers: 24}, parallel: {tp: 2}}");
  const TrainingFields assumed =
      fields_of("{model: {layers: 32, vocab: 51200}, parallel: {tp: 4, cp: 1, software: old}}");
  REQUIRE(fill_missing(fields, assumed) ==
          std::vector<std::string>{"model.vocab", "parallel.cp", "parallel.software"});
  REQUIRE(fields.model.layers == 24);
  REQUIRE(fields.plan.tensor == 2);
  REQUIRE(fields.plan.context == 1);
  REQUIRE(fields.software.profile == "old");
}

TEST_CASE("a correction replaces what is there", "[training]") {
  TrainingFields fields = fields_of("{model: {layers: 24}, parallel: {dp: 8}}");
  REQUIRE(replace_with(fields, fields_of("{model: {layers: 24}, parallel: {dp: 4}}")) ==
          std::vector<std::string>{"parallel.dp"});
  REQUIRE(fields.plan.data == 4);
}

TEST_CASE("an unknown key of a training row is an error with its place", "[training]") {
  REQUIRE(error_of("model: {layer: 24}") ==
          "f.yaml:1:9: model: unknown key \"layer\"; did you mean \"layers\"?");
}

}  // namespace trainyard
