// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/accuracy/doctor_report.h"

#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {
namespace {

// A log of one row, 20 us where 10 us were expected.
DoctorReport small_report_report() {
  DoctorReport report{.log = "a.log",
                      .cluster = "a machine",
                      .ranks = 8,
                      .nodes = 1,
                      .operations = {Operation::AllReduce}};
  DoctorResult& result = report.result;
  result.hypotheses.faults = {
      {.code = "healthy", .title = "healthy", .variants = {{.change = "nothing"}}},
      {.code = "nvls-off", .title = "NVLS is off", .variants = {{.change = "NCCL_NVLS_ENABLE=0"}}},
      {.code = "slow-gpu", .title = "a GPU is slow", .variants = {{.change = "half of it"}}},
      {.code = "nic-down", .title = "a NIC is down", .left_out = "one node does not use NICs"},
      {.code = "gpu-pcie-x8", .title = "a GPU at x8", .variants = {{.change = "gpu7 at x8"}}}};
  result.hypotheses.candidates = {
      {.fault = 0, .log_times = {}}, {.fault = 1, .log_times = {}}, {.fault = 2, .log_times = {}}};
  result.rows = {{.healthy = {.size = kib(1),
                              .time = microseconds(10),
                              .how = "Ring LL, 1 channels",
                              .limit = {.limit = TimeLimit::Latency, .share = 0.9}},
                  .measured = microseconds(20),
                  .expected = {.low = microseconds(8), .high = microseconds(12)},
                  .verdict = Verdict::Above}};
  result.diagnosis = {
      .explanations = {{.faults = {1, 2}, .probability = 0.9, .candidate = 1, .tail = 0.5},
                       {.faults = {0}, .probability = 0.1, .candidate = 0, .tail = 0.02}},
      .unseen = {4},
      .is_healthy = false,
      .fits = true,
      .is_sure = true};
  return report;
}

}  // namespace

TEST_CASE("the verdict names what cannot be told apart") {
  DoctorReport report = small_report_report();
  REQUIRE(verdict_text(report.result) == "Not normal: NVLS is off, or a GPU is slow with 90 %");
  report.result.diagnosis.is_sure = false;
  REQUIRE(verdict_text(report.result) ==
          "Not normal: NVLS is off, or a GPU is slow with 90 %; the log can hardly tell it from: "
          "healthy, 10 %");
  report.result.diagnosis.fits = false;
  report.result.diagnosis.explanations[0].tail = 0.002;
  REQUIRE(verdict_text(report.result) ==
          "Not normal, and nothing that was tried explains it: NVLS is off, or a GPU is slow comes "
          "nearest, and 0.2 % of such machines are as far off");
}

TEST_CASE("rows outside on one side are said before any explanation") {
  DoctorReport report = small_report_report();
  DoctorResult& result = report.result;
  result.above = 1;
  REQUIRE(verdict_text(result) ==
          "Not normal: 1 of 1 rows take longer than their ranges; of the faults that were tried, "
          "NVLS is off, or a GPU is slow is the likeliest with 90 %");
  result.diagnosis.fits = false;
  result.diagnosis.explanations[0].tail = 0.002;
  REQUIRE(verdict_text(result) ==
          "Not normal: 1 of 1 rows take longer than their ranges, and nothing that was tried "
          "explains it: NVLS is off, or a GPU is slow comes nearest, and 0.2 % of such machines "
          "are as far off");
  result.above = 0;
  result.below = 1;
  REQUIRE(verdict_text(result).starts_with(
      "Not normal: 1 of 1 rows take less time than their ranges, which no fault does"));
}

TEST_CASE("wrong results come before anything about times") {
  DoctorReport report = small_report_report();
  DoctorResult& result = report.result;
  result.diagnosis.is_healthy = true;
  result.diagnosis.explanations = {{.faults = {0}, .probability = 0.9, .candidate = 0}};
  REQUIRE(result.is_normal());
  result.wrong_results = {"a.log:20: #wrong is 17 at 1024 B"};
  REQUIRE(!result.is_normal());
  REQUIRE(verdict_text(result) ==
          "Not normal: the machine gives wrong results. Its times by themselves: Normal: healthy "
          "with 90 %");
  const std::string text = render(report, Format::Table);
  REQUIRE(text.find("\n# Wrong results, data is corrupted: a.log:20: #wrong is 17 at 1024 B\n") <
          text.find("size"));
  const auto json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["normal"] == false);
  REQUIRE(json["wrong_results"][0] == result.wrong_results[0]);
}

TEST_CASE("a diagnosis as text has rows, explanations and what was not tried") {
  const std::string text = render(small_report_report(), Format::Table);
  for (const char* const part :
       {"# a.log on a machine: 8 ranks, 1 node\n", "above", "Ring LL, 1 channels", "latency",
        "nvls-off, slow-gpu", "NCCL_NVLS_ENABLE=0", "# Would not show in this log: gpu-pcie-x8\n",
        "# Not tried: nic-down (one node does not use NICs)\n"}) {
    INFO(part);
    REQUIRE(text.find(part) != std::string::npos);
  }
}

TEST_CASE("a diagnosis as CSV and JSON has keys with units") {
  REQUIRE(render(small_report_report(), Format::Csv)
              .starts_with("size_bytes,operation,measured_us,predicted_us,low_us,high_us,verdict,"
                           "bound_by,bound_share,how\n1024,all_reduce,20,10,8,12,above,latency,0.9,"
                           "\"Ring LL, 1 channels\"\n"));
  const auto json = nlohmann::json::parse(render(small_report_report(), Format::Json));
  REQUIRE(json["normal"] == false);
  REQUIRE(json["rows"][0]["verdict"] == "above");
  REQUIRE(json["explanations"][0]["faults"].size() == 2);
  REQUIRE(json["explanations"][1]["probability"] == 0.1);
  REQUIRE(json["not_tried"][0]["fault"] == "nic-down");
  REQUIRE(json["would_not_show"][0] == "gpu-pcie-x8");
}

}  // namespace trainyard
