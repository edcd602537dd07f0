// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/search_report.h"

#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {
namespace {

FoundPlan plan_of(std::size_t index, int tensor, SimTime linear, SimTime traffic) {
  FoundPlan found{
      .timed = {
          .index = index,
          .plan = {.tensor = tensor, .data = 8 / tensor, .global_batch = 8, .sequence = 1000}}};
  found.timed.step.parts[StepPart::Linear] = linear;
  found.timed.step.parts[StepPart::Tensor] = traffic;
  found.timed.step.time = linear + traffic;
  found.timed.bound = linear;
  found.timed.memory[MemoryClass::Weights] = gib(8 / tensor);
  found.timed.network_bytes = static_cast<double>(gib(1).count());
  return found;
}

SearchReport search_report() {
  SearchReport report{.cluster = "C",
                      .workload = "w",
                      .model = "M",
                      .software = "s",
                      .precision = "bf16",
                      .runtime = "nccl",
                      .method = "closed forms",
                      .refined_method = {},
                      .sizes = {},
                      .flops_of_token = 1e9,
                      .peak = 1e13,
                      .memory_size = gib(16),
                      .notes = {"a note"}};
  SearchOfSize size{.gpus = 8, .counts = {}, .plans = {}};
  size.counts.all = 10;
  size.counts.invalid["plan: expected this"] = 3;
  size.counts.out_of_memory = 2;
  size.counts.pruned = 3;
  size.counts.timed = 2;
  size.plans.push_back(plan_of(4, 2, milliseconds(900), milliseconds(100)));
  size.plans.push_back(plan_of(7, 4, milliseconds(850), milliseconds(250)));
  size.plans.front().is_trade = true;
  report.sizes.push_back(size);
  return report;
}

}  // namespace

TEST_CASE("a search is reported with what became of every plan", "[search-report]") {
  const std::string text = render(document_of(search_report()), Format::Table);
  INFO(text);
  for (const std::string part :
       {"# 8 GPUs: 10 plans: 3 invalid, 2 out of memory, 3 slower by their bound, 2 timed",
        "   8  1*   2  no", "1.0000  10.00", "# Why, on 8 GPUs", "+0.1500",
        "# plan 2: 0.1000 s (10.00 %) longer: tensor +0.1500, linear -0.0500", "# Note: a note"}) {
    INFO(part);
    REQUIRE(text.find(part) != std::string::npos);
  }
  REQUIRE(text.find("given") == std::string::npos);
  REQUIRE(text.find("EP") == std::string::npos);
}

TEST_CASE("the workload's own plan stands beside the best", "[search-report]") {
  SearchReport report = search_report();
  report.sizes[0].given = plan_of(10, 8, milliseconds(800), milliseconds(700));
  const std::string text = render(document_of(report), Format::Table);
  REQUIRE(text.find("# given: 0.5000 s (50.00 %) longer: tensor +0.6000, linear -0.1000") !=
          std::string::npos);
  REQUIRE(text.find("given   8  no") != std::string::npos);
}

TEST_CASE("times of a second look come first", "[search-report]") {
  SearchReport report = search_report();
  report.refined_method = "graph of operations";
  for (FoundPlan& plan : report.sizes[0].plans) {
    plan.refined = plan.timed.step;
    plan.refined->parts[StepPart::Bubble] = milliseconds(1000);
    plan.refined->time += milliseconds(1000);
  }
  const auto json = nlohmann::json::parse(render(document_of(report), Format::Json));
  REQUIRE(json["plans"][0]["step_time_s"] == 2.0);
  REQUIRE(json["plans"][0]["first_step_time_s"] == 1.0);
  REQUIRE(json["refined_method"] == "graph of operations");
}

TEST_CASE("JSON has the rules that plans broke", "[search-report]") {
  const auto json = nlohmann::json::parse(render(document_of(search_report()), Format::Json));
  const auto& search = json["searches"][0];
  REQUIRE(search["plans"]["invalid_by_rule"]["plan: expected this"] == 3);
  REQUIRE(search["plans"]["pruned"] == 3);
  REQUIRE(search["why"]["plan 2"].get<std::string>().starts_with("0.1000 s"));
  REQUIRE(json["plans"].size() == 2);
  REQUIRE(json["plans"][1]["tp"] == 4);
  REQUIRE(json["plans"][1]["headroom_gib"] == 14.0);
  REQUIRE(json["plans"][0]["is_trade"] == true);
  const std::string csv = render(document_of(search_report()), Format::Csv);
  REQUIRE(
      csv.starts_with("gpus,place,tp,sp,cp,pp,vpp,dp,ep,etp,micro_batch,recompute,zero_stage,"));
}

}  // namespace trainyard
