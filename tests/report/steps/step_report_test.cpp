// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/step_report.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {
namespace {

StepRun run_of() {
  StepRun run{.plan = {.tensor = 2, .data = 2, .global_batch = 8, .sequence = 1000},
              .step = {},
              .overlap = {},
              .memory_size = gib(4),
              .peak = 1e13};
  run.step.parts[StepPart::Linear] = milliseconds(1500);
  run.step.parts[StepPart::Bubble] = milliseconds(500);
  run.memory[MemoryClass::Weights] = gib(3);
  run.step.time = run.step.parts.total();
  return run;
}

StepReport report_of(const StepRun& run) {
  return {.setup = {.cluster = "C",
                    .workload = "w",
                    .gpus = 4,
                    .model = "M",
                    .software = "s",
                    .precision = "bf16",
                    .runtime = "plain",
                    .fidelity = "flow"},
          .run = &run,
          .flops_of_token = 1e9,
          .interval = TimeInterval{milliseconds(1800), milliseconds(2600)},
          .notes = {"a note"}};
}

}  // namespace

TEST_CASE("a step is reported with tokens, operations and their convention", "[step-report]") {
  StepRun run = run_of();
  const StepReport report = report_of(run);
  REQUIRE(report.tokens_per_second() == Approx(4000.0));
  REQUIRE(report.flops_per_gpu() == Approx(1e12));
  const std::string text = render(document_of(report), Format::Table);
  for (const std::string part :
       {"step time                    2.0000 s, 1.8000 to 2.6000 in nine of ten",
        "4000.0 /s, 1000.0 /s for each GPU", "MFU 10.00 % of 10.0 T (convention: model", "linear",
        "75.00", "memory peak                    3.00 GiB of 4.00\n", "# Note: a note",
        "fidelity flow"}) {
    INFO(text);
    REQUIRE(text.find(part) != std::string::npos);
  }
  REQUIRE(text.find("optimizer") == std::string::npos);
  run.memory[MemoryClass::Activations] = gib(2);
  REQUIRE(render(document_of(report), Format::Table).find("5.00 GiB of 4.00: DOES NOT FIT") !=
          std::string::npos);
}

TEST_CASE("a model of images is reported with its images", "[step-report]") {
  const StepRun run = run_of();
  StepReport report = report_of(run);
  REQUIRE(render(document_of(report), Format::Json).find("images_per_s") == std::string::npos);
  report.has_images = true;
  const auto json = nlohmann::json::parse(render(document_of(report), Format::Json));
  REQUIRE(json["images_per_s"] == 4.0);
  REQUIRE(json["images_per_s_per_gpu"] == 1.0);
  REQUIRE(render(document_of(report), Format::Table)
              .find("images                          4.0 /s, 1.0 /s for each GPU\n") !=
          std::string::npos);
}

TEST_CASE("what is computed again is in HFU, not in MFU", "[step-report]") {
  const StepRun run = run_of();
  StepReport report = report_of(run);
  REQUIRE(report.hfu() == report.mfu());
  REQUIRE(render(document_of(report), Format::Table).find("HFU") == std::string::npos);
  report.recomputed_of_token = 0.25e9;
  REQUIRE(report.mfu() == Approx(0.1));
  REQUIRE(render(document_of(report), Format::Table).find("1.2 T for each GPU, HFU 12.50 %") !=
          std::string::npos);
  REQUIRE(nlohmann::json::parse(render(document_of(report), Format::Json))["hfu"] == Approx(0.125));
}

TEST_CASE("JSON says all that a step was predicted from", "[step-report]") {
  StepRun run = run_of();
  StepReport report = report_of(run);
  run.plan.recompute = Recompute::Full;
  run.plan.zero_stage = 3;
  run.plan.shard_group = 2;
  report.method = StepMethod::Graph;
  report.setup.slow_rank = {.rank = 3, .ppm = 1'250'000};
  report.setup.jitter = {.rank_ppm = 10'000, .operation_ppm = 0, .seed = 7};
  run.overlap.data = true;
  report.routing = {.imbalance = 1.5};
  const auto json = nlohmann::json::parse(render(document_of(report), Format::Json));
  REQUIRE(json["plan"]["recompute"] == "full");
  REQUIRE(json["plan"]["shards"] == 2);
  REQUIRE(json["plan"]["order"] == nlohmann::json{"tensor", "context", "data", "pipeline"});
  REQUIRE(json["method"] == "graph");
  REQUIRE(json["traffic"] == "alone");
  REQUIRE(json["slow_rank"] == nlohmann::json{{"rank", 3}, {"factor", 1.25}});
  REQUIRE(json["jitter"] == nlohmann::json{{"ranks", 0.01}, {"operations", 0.0}, {"seed", 7}});
  REQUIRE(json["overlap"]["data"] == true);
  REQUIRE(json["routing"]["imbalance"] == 1.5);
}

TEST_CASE("JSON has every part, and picoseconds that add up", "[step-report]") {
  const StepRun run = run_of();
  const auto json = nlohmann::json::parse(render(document_of(report_of(run)), Format::Json));
  REQUIRE(json["step_time_s"] == 2.0);
  REQUIRE(json["mfu"] == Approx(0.1));
  REQUIRE(json["breakdown_s"].size() == kStepParts);
  std::int64_t sum = 0;
  for (const auto& part : json["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == json["step_time_ps"].get<std::int64_t>());
  REQUIRE(json["plan"]["tensor"] == 2);
  REQUIRE(json["memory_peak_gib"] == 3.0);
  REQUIRE(json["memory_fits"] == true);
  REQUIRE(json["memory_peak_by_class_gib"]["weights"] == 3.0);
}

TEST_CASE("CSV is a header and a line", "[step-report]") {
  const StepRun run = run_of();
  const std::string csv = render(document_of(report_of(run)), Format::Csv);
  REQUIRE(std::count(csv.begin(), csv.end(), '\n') == 2);
  REQUIRE(
      csv.rfind("cluster,workload,gpus,step_time_s,step_time_low_s,step_time_high_s,tokens_per_s,",
                0) == 0);
  REQUIRE(csv.find("C,w,4,2,1.8,2.6,") != std::string::npos);
  REQUIRE(csv.find("memory_peak_gib,memory_size_gib,memory_fits,") != std::string::npos);
  REQUIRE(csv.find(",3,4,true,") != std::string::npos);
}

TEST_CASE("the profile of a step's memory has a line for each pass of each rank", "[memory]") {
  MemoryMoment forward{.position = 0, .pass = {}, .unit = {.layer = 3}, .use = {}};
  forward.use[MemoryClass::Weights] = gib(4);
  forward.use[MemoryClass::GatheredWeights] = mib(512);
  MemoryMoment last = forward;
  last.position = 1;
  last.unit.place = StepPlace::Optimizer;
  const StepMemory memory{
      .ranks =
          {{.rank = 0, .passes = {{}, {}}, .moments = {forward, last}, .moment_of_pass = {0, 1}},
           {.rank = 1, .passes = {{}}, .moments = {last}, .moment_of_pass = {0}}},
      .worst = 0};
  const std::string csv = memory_profile_csv(memory);
  REQUIRE(csv.rfind("rank,position,moment,weights_gib,gradients_gib,optimizer_states_gib,"
                    "gathered_weights_gib,activations_gib,",
                    0) == 0);
  const std::string sizes = "4,0,0,0.5,0,0,0,0,0,0,0\n";
  const auto line = [&](const char* place, const MemoryMoment& moment) {
    return std::string(place) +
           (moment.where().find(',') == std::string::npos ? moment.where()
                                                          : "\"" + moment.where() + "\"") +
           "," + sizes;
  };
  REQUIRE(csv.substr(csv.find('\n') + 1) ==
          line("0,0,", forward) + line("0,1,", last) + line("1,0,", last));
}

}  // namespace trainyard
