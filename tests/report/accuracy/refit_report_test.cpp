// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/accuracy/refit_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/accuracy/validation_report.h"

namespace trainyard {
namespace {

using namespace literals;
using Catch::Matchers::Contains;

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

ValidationReport report(bool with_left_out) {
  ValidationReport made;
  made.runtime = "nccl";
  made.validation = validation(12_us, 10_us);
  Refit refit;
  refit.constants = {{.name = "a.cost",
                      .path = "a.cost.value",
                      .kind = ConstantKind::Time,
                      .in_file = 1e-6,
                      .start = 3e-6,
                      .least = 1e-7,
                      .most = 2e-6,
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

}  // namespace

TEST_CASE("the text has errors three times, what only one system shows, and the constants",
          "[fit]") {
  const std::string text = render(report(true), Format::Table);
  REQUIRE_THAT(text, Contains("left out"));
  REQUIRE_THAT(text, Contains("100.0 %"));
  REQUIRE_THAT(text, Contains("# only first shows: a.cost\n"));
  REQUIRE_THAT(text, Contains("sharing all constants"));
  REQUIRE_THAT(text, Contains("2 us!  1.7 us to 2 us"));
  REQUIRE_THAT(render(report(false), Format::Table), !Contains("left out"));
}

TEST_CASE("JSON has the fits in the summary, in classes, systems and cases", "[fit]") {
  const auto json = nlohmann::json::parse(render(report(true), Format::Json));
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
  const auto without = nlohmann::json::parse(render(report(false), Format::Json));
  REQUIRE_FALSE(without["summary"].contains("leave_one_out"));
  REQUIRE(without["summary"].contains("refit"));
}

TEST_CASE("CSV has a column for each set of constants", "[fit]") {
  const std::string csv = render(report(true), Format::Csv);
  REQUIRE_THAT(csv, Contains("refit_median_error_large,refit_bias_large,refit_median_error_small,"
                             "leave_one_out_median_error_large"));
  REQUIRE_THAT(render(report(false), Format::Csv), !Contains("leave_one_out"));
}

}  // namespace trainyard
