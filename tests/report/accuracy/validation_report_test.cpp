// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "report/accuracy/validation_report.h"

namespace trainyard {
namespace {

using namespace literals;

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

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the text names errors, what is not covered, what does not count and exceeded budgets") {
  const std::string text = render(report_report(), Format::Table);
  REQUIRE(holds(text, "against 3 measured tables: 2 covered, 2 scored"));
  REQUIRE(holds(text, "100.0 %"));
  REQUIRE(holds(text, "1MiB +100.0 %"));
  REQUIRE(holds(text, "# not covered: third: needs a file\n"));
  REQUIRE(holds(text, "# excluded: first, from 1GiB: a fault\n"));
  REQUIRE(holds(text, "# note: a note\n"));
  REQUIRE(holds(text, "# budget exceeded: boxes: covered: expected at least 3, found 2\n"));
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

}  // namespace
}  // namespace trainyard
