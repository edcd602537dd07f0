// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/step_report.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {
namespace {

StepReport report_of() {
  StepReport report{.cluster = "C",
                    .workload = "w",
                    .model = "M",
                    .software = "s",
                    .precision = "bf16",
                    .runtime = "plain",
                    .fidelity = "flow",
                    .plan = {.tensor = 2, .data = 2, .global_batch = 8, .sequence = 1000},
                    .step = {},
                    .flops_of_token = 1e9,
                    .convention = FlopsConvention::Model,
                    .peak = 1e13,
                    .memory = {},
                    .memory_size = gib(4),
                    .notes = {"a note"}};
  report.step.parts[StepPart::Linear] = milliseconds(1500);
  report.step.parts[StepPart::Bubble] = milliseconds(500);
  report.memory[MemoryClass::Weights] = gib(3);
  report.step.time = report.step.parts.total();
  return report;
}

}  // namespace

TEST_CASE("a step is reported with tokens, operations and their convention", "[step-report]") {
  const StepReport report = report_of();
  REQUIRE(report.tokens_per_second() == Approx(4000.0));
  REQUIRE(report.flops_per_gpu() == Approx(1e12));
  const std::string text = render(document_of(report), Format::Table);
  for (const std::string part :
       {"step time                    2.0000 s", "4000.0 /s, 1000.0 /s for each GPU",
        "MFU 10.00 % of 10.0 T (convention: model", "linear", "75.00",
        "memory peak                    3.00 GiB of 4.00\n", "# Note: a note", "fidelity flow"}) {
    INFO(text);
    REQUIRE(text.find(part) != std::string::npos);
  }
  REQUIRE(text.find("optimizer") == std::string::npos);
  StepReport too_large = report;
  too_large.memory[MemoryClass::Activations] = gib(2);
  REQUIRE(render(document_of(too_large), Format::Table).find("5.00 GiB of 4.00: DOES NOT FIT") !=
          std::string::npos);
}

TEST_CASE("a model of images is reported with its images", "[step-report]") {
  StepReport report = report_of();
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
  StepReport report = report_of();
  REQUIRE(report.hfu() == report.mfu());
  REQUIRE(render(document_of(report), Format::Table).find("HFU") == std::string::npos);
  report.recomputed_of_token = 0.25e9;
  REQUIRE(report.mfu() == Approx(0.1));
  REQUIRE(render(document_of(report), Format::Table).find("1.2 T for each GPU, HFU 12.50 %") !=
          std::string::npos);
  REQUIRE(nlohmann::json::parse(render(document_of(report), Format::Json))["hfu"] == Approx(0.125));
}

TEST_CASE("JSON says all that a step was predicted from", "[step-report]") {
  StepReport report = report_of();
  report.plan.recompute = Recompute::Full;
  report.plan.zero_stage = 3;
  report.plan.shard_group = 2;
  report.method = StepMethod::Graph;
  report.slow_rank = {.rank = 3, .ppm = 1'250'000};
  report.jitter = {.rank_ppm = 10'000, .operation_ppm = 0, .seed = 7};
  report.overlap.data = true;
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
  const auto json = nlohmann::json::parse(render(document_of(report_of()), Format::Json));
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
  const std::string csv = render(document_of(report_of()), Format::Csv);
  REQUIRE(std::count(csv.begin(), csv.end(), '\n') == 2);
  REQUIRE(csv.rfind("cluster,workload,gpus,step_time_s,tokens_per_s,", 0) == 0);
  REQUIRE(csv.find("C,w,4,2,") != std::string::npos);
  REQUIRE(csv.find("memory_peak_gib,memory_size_gib,memory_fits,") != std::string::npos);
  REQUIRE(csv.find(",3,4,true,") != std::string::npos);
}

}  // namespace trainyard
