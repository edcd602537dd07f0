// SPDX-License-Identifier: Apache-2.0
// The report on measured training steps in its three forms.
#include "report/accuracy/training_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.h"

namespace trainyard {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One source with one dense step predicted 10 % too slow, and two rows without a plan.
TrainingReport report_of_one() {
  SourceScore source;
  source.name = "lab";
  source.generation = "a100";
  source.status = {{TrainingRowStatus::Complete, 1}, {TrainingRowStatus::Missing, 2}};
  source.missing = {{"parallel.tp", 2}};
  source.steps = {{.id = "a", .measured_s = 2.0, .predicted_s = 2.2}};
  source.unscored = {{.id = "b", .status = TrainingRowStatus::Missing, .reason = "parallel.tp"},
                     {.id = "c", .status = TrainingRowStatus::Missing, .reason = "parallel.tp"}};
  return {.score = score_of({source}), .notes = {"a note"}};
}

}  // namespace

TEST_CASE("the report on training steps says how many rows it is about", "[training]") {
  const std::string text = render(report_of_one(), Format::Table);
  REQUIRE(has(text, "against 3 measured rows: 1 have a plan, 1 are predicted"));
  REQUIRE(has(text, "10.0 %"));
  REQUIRE(has(text, "+10.0 %"));
  REQUIRE(has(text, "# Note: rows that lack a field: parallel.tp 2\n"));
  REQUIRE(has(text, "# Note: missing: lab, 2 rows (b, ...): parallel.tp\n"));
  REQUIRE(has(text, "# Note: a note\n"));
}

TEST_CASE("errors of training steps are logarithms for programs", "[training]") {
  const auto json = nlohmann::json::parse(render(report_of_one(), Format::Json));
  REQUIRE(json["summary"]["median_error_dense"].get<double>() == Approx(0.0953102));
  REQUIRE(json["summary"]["median_error_moe"].is_null());
  REQUIRE(json["summary"]["missing"] == 2);
  REQUIRE(json["summary"]["missing_fields"]["parallel.tp"] == 2);
  REQUIRE(json["sources"][0]["rows"][0]["id"] == "a");
  REQUIRE(json["sources"][0]["unscored"][1]["reason"] == "parallel.tp");
  const std::string csv = render(report_of_one(), Format::Csv);
  REQUIRE(
      has(csv, "source,generation,complete,assumed,missing,clash,excluded,no_step,rows_dense,"));
  REQUIRE(has(csv, "\nlab,a100,1,0,2,0,0,0,1,0.0953"));
}

TEST_CASE("measured memory is reported row by row to programs", "[training]") {
  TrainingReport report = report_of_one();
  const StepErrors errors{.sources = 1, .rows = 1};
  report.score.memory = errors;
  report.score.memory_sources = {
      {.name = "lab",
       .errors = errors,
       .rows = {{.id = "m", .measured_s = 1024.0, .predicted_s = 2048.0}}}};
  const auto json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["memory"].size() == 1);
  const auto row = json["memory"][0]["rows"][0];
  REQUIRE(row["id"] == "m");
  REQUIRE(row["measured_bytes"].get<double>() == 1024.0);
  REQUIRE(row["predicted_bytes"].get<double>() == 2048.0);
  REQUIRE(row["log_ratio"].get<double>() == Approx(0.6931472));
}

TEST_CASE("the report on training steps counts rows in their intervals by class", "[training]") {
  TrainingReport report = report_of_one();
  report.coverage = {{"as shown", {{"all", {.rows = 8, .inside = 7}}}}};
  const std::string text = render(report, Format::Table);
  REQUIRE(has(text, "# Rows in their intervals of 90 %, as shown."));
  REQUIRE(has(text, "87.5 %"));
  const auto json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["coverage"]["as shown"][0]["class"] == "all");
  REQUIRE(json["coverage"]["as shown"][0]["inside"].get<double>() == 0.875);
}

}  // namespace trainyard
