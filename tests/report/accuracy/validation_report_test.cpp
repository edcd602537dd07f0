// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/accuracy/validation_report.h"

namespace trainyard {
namespace {

using namespace literals;
using Catch::Matchers::Contains;

CaseResult result(const std::string& name, SimTime predicted) {
  CaseResult one;
  one.item.name = name;
  one.item.system_class = "boxes";
  one.item.ranks = 8;
  one.item.excluded = {{.from = 1_GiB, .reason = "a fault"}};
  one.rows.push_back({.size = 1_MiB, .measured = 10_us});
  one.rows.push_back({.size = 1_GiB, .measured = 10_us, .excluded = "a fault"});
  for (ValidationRow& row : one.rows) {
    row.predicted = {.time = predicted, .how = "by hand"};
  }
  one.errors = error_figures(one.rows, CountedRows::Counted);
  one.worst = 0;
  return one;
}

ValidationReport report_report() {
  CaseResult missing = result("third", 10_us);
  missing.not_covered = "needs a file";
  missing.worst.reset();
  for (ValidationRow& row : missing.rows) {
    row.predicted.reset();
  }
  ValidationReport made;
  made.validation =
      validation_of({result("first", 20_us), result("second", 11_us), std::move(missing)});
  made.runtime = "plain";
  made.exceeded = {"boxes: covered: expected at least 3, found 2"};
  made.notes = {"a note"};
  return made;
}

// Two systems with a large row of 10 us each.
Validation validation(SimTime first, SimTime second) {
  std::vector<CaseResult> cases(2);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CaseResult& one = cases[i];
    one.item.name = i == 0 ? "first" : "second";
    one.item.system_class = "boxes";
    one.item.system = one.item.name;
    one.item.ranks = 8;
    one.rows.push_back({.size = 1_MiB, .measured = 10_us});
    one.rows.back().predicted = {.time = i == 0 ? first : second, .how = "by hand"};
    one.errors = error_figures(one.rows, CountedRows::Counted);
    one.worst = 0;
  }
  return validation_of(std::move(cases));
}

ValidationReport refit_report(bool with_left_out) {
  ValidationReport made;
  made.runtime = "nccl";
  made.validation = validation(12_us, 10_us);
  Refit refit;
  refit.constants = {{.name = "a.cost",
                      .path = "a.cost.value",
                      .kind = ConstantKind::Time,
                      .in_file = 1e-6,
                      .start = 3e-6,
                      .min = 1e-7,
                      .max = 2e-6,
                      .spread = 2.0}};
  refit.fit.parameters = {
      {.value = std::log(2e-6), .standard_error = 0.1, .rows = 7, .systems = {"first"}}};
  refit.fit.converged = true;
  refit.fitted = validation(11_us, 10_us);
  if (with_left_out) {
    refit.left_out = validation(20_us, 10_us);
    refit.systems = {{.system = "first", .fit = refit.fit, .unseen = {0}, .alone = {"first"}},
                     {.system = "second", .fit = refit.fit, .unseen = {}, .alone = {}}};
  }
  made.refit = std::move(refit);
  return made;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the text names errors, what is not covered, what does not count and exceeded budgets") {
  const std::string text = render(report_report(), Format::Table);
  REQUIRE(holds(text, "against 3 measured tables: 2 covered, 2 scored"));
  REQUIRE(holds(text, "100.0 %"));
  REQUIRE(holds(text, "1MiB +100.0 %"));
  REQUIRE(holds(text, "# Note: not covered: third: needs a file\n"));
  REQUIRE(holds(text, "# Note: excluded: first, from 1GiB: a fault\n"));
  REQUIRE(holds(text, "# Note: a note\n"));
  REQUIRE(holds(text, "# Note: budget exceeded: boxes: covered: expected at least 3, found 2\n"));
  REQUIRE(holds(text, "\nboxes "));
  REQUIRE(holds(text, " 10.0 (+48.3) "));
  REQUIRE(holds(text, "\nall "));
}

TEST_CASE("CSV has one line for each case") {
  const std::string csv = render(report_report(), Format::Csv);
  REQUIRE(std::count(csv.begin(), csv.end(), '\n') == 4);
  REQUIRE(csv.rfind("case,class,row_count,excluded_rows,median_error_large,", 0) == 0);
  REQUIRE(holds(csv, ",false,false,needs a file\n"));
}

TEST_CASE("JSON has the summary, the classes and every row of every case") {
  const auto json = nlohmann::json::parse(render(report_report(), Format::Json));
  REQUIRE(json["summary"]["cases"] == 3);
  REQUIRE(json["summary"]["covered"] == 2);
  REQUIRE(json["summary"]["scored"] == 2);
  REQUIRE(json["summary"]["median_error_large"].get<double>() == Approx(std::log(1.1)));
  REQUIRE(json["summary"]["rows_p90_error_large"].get<double>() == Approx(std::log(2.0)));
  REQUIRE(json["summary"]["bias_large"].get<double>() == Approx(std::log(2.2) / 2.0));
  REQUIRE(json["summary"]["median_error_small"].is_null());
  REQUIRE(json["summary"]["budgets_exceeded"].size() == 1);
  REQUIRE(json["classes"].size() == 1);
  REQUIRE(json["classes"][0]["by_size"].size() == 6);
  REQUIRE(json["classes"][0]["by_size"][3]["from_bytes"] == 1048576);
  REQUIRE(json["classes"][0]["by_size"][3]["row_count"] == 2);
  REQUIRE(json["classes"][0]["by_size"][3]["bias"].get<double>() == Approx(std::log(2.2) / 2.0));
  REQUIRE(json["classes"][0]["by_size"][5]["median_error"].is_null());
  REQUIRE(json["cases"].size() == 3);
  REQUIRE(json["cases"][0]["case"] == "first");
  REQUIRE(json["cases"][0]["rows"].size() == 2);
  REQUIRE(json["cases"][0]["rows"][1]["excluded"] == true);
  REQUIRE(json["cases"][0]["rows"][0]["measured_us"].get<double>() == Approx(10.0));
  REQUIRE(json["cases"][0]["rows"][0]["predicted_us"].get<double>() == Approx(20.0));
  REQUIRE(json["cases"][2]["covered"] == false);
  REQUIRE(json["cases"][2]["not_covered"] == "needs a file");
}

TEST_CASE("the text has errors three times, what only one system shows, and the constants",
          "[fit]") {
  const std::string text = render(refit_report(true), Format::Table);
  REQUIRE_THAT(text, Contains("left out"));
  REQUIRE_THAT(text, Contains("100.0 %"));
  REQUIRE_THAT(text, Contains("# Note: only first shows: a.cost\n"));
  REQUIRE_THAT(text, Contains("sharing all constants"));
  REQUIRE_THAT(text, Contains("2 us!  1.7 us to 2 us"));
  REQUIRE_THAT(render(refit_report(false), Format::Table), !Contains("left out"));
}

TEST_CASE("JSON has the fits in the summary, in classes, systems and cases", "[fit]") {
  const auto json = nlohmann::json::parse(render(refit_report(true), Format::Json));
  const auto& summary = json["summary"];
  REQUIRE(summary["leave_one_out"]["bias_large"].get<double>() == Approx(std::log(2.0) / 2.0));
  REQUIRE(summary["leave_one_out"]["median_error_small"].is_null());
  REQUIRE(summary["leave_one_out"]["of_shared_constants"]["cases"] == 1);
  REQUIRE(summary["refit"]["bias_large"].get<double>() == Approx(std::log(1.1) / 2.0));
  REQUIRE(json["classes"][0]["leave_one_out"]["cases"] == 2);
  REQUIRE(json["cases"][0]["leave_one_out"]["median_error_large"].get<double>() ==
          Approx(std::log(2.0)));
  REQUIRE(json["systems"].size() == 2);
  REQUIRE(json["systems"][0]["unseen"][0] == "a.cost");
  REQUIRE(json["constants"][0]["fitted"].get<double>() == Approx(2e-6));
  REQUIRE(json["constants"][0]["interval_90"][0].get<double>() == Approx(2e-6 * std::exp(-0.1645)));
  REQUIRE(json["constants"][0]["interval_90"][1].get<double>() == Approx(2e-6));
  REQUIRE(json["constants"][0]["at_limit"] == true);
  const auto without = nlohmann::json::parse(render(refit_report(false), Format::Json));
  REQUIRE_FALSE(without["summary"].contains("leave_one_out"));
  REQUIRE(without["summary"].contains("refit"));
}

TEST_CASE("CSV has a column for each set of constants", "[fit]") {
  const std::string csv = render(refit_report(true), Format::Csv);
  REQUIRE_THAT(csv, Contains("refit_median_error_large,refit_bias_large,refit_median_error_small,"
                             "leave_one_out_median_error_large"));
  REQUIRE_THAT(render(refit_report(false), Format::Csv), !Contains("leave_one_out"));
}

}  // namespace
}  // namespace trainyard
