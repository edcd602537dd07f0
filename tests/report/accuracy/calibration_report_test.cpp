// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/accuracy/calibration_report.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {
namespace {

CalibratedConstant constant(const std::string& name, ConstantMark mark, std::size_t rows) {
  CalibratedConstant one{.constant = {.name = name,
                                      .path = name + ".value",
                                      .kind = ConstantKind::Time,
                                      .in_file = 2e-6},
                         .mark = mark,
                         .value = 2e-6,
                         .rows = rows,
                         .files = {"a.log"}};
  if (mark == ConstantMark::Measured) {
    one.value = 3e-6;
    one.low = 2.9e-6;
    one.high = 3.1e-6;
  } else {
    one.reason = "because";
  }
  return one;
}

CalibrationReport small_report() {
  CalibrationReport report{.cluster = "box"};
  ProfileCalibration& calibration = report.calibration.emplace();
  calibration.constants = {constant("a.cost", ConstantMark::Measured, 7),
                           constant("b.cost", ConstantMark::Cited, 4),
                           constant("c.cost", ConstantMark::Guess, 0)};
  const auto row = [](RowUse use) {
    return CalibratedRow{.size = kib(1),
                         .line = 9,
                         .measured = SimTime(100),
                         .shipped = SimTime(200),
                         .fitted = SimTime(110),
                         .use = use};
  };
  calibration.tables = {{.file = "a.log",
                         .operation = Operation::AllReduce,
                         .ranks = 8,
                         .rows = {row(RowUse::Fitted), row(RowUse::KeptOut)}}};
  calibration.basis = {.machine = {.gpu = "hopper", .scale_up = "nvswitch", .network = "none"},
                       .rows = {}};
  return report;
}

}  // namespace

TEST_CASE("a calibration is shown with its errors, what is fitted and what is not") {
  const std::string text = render(small_report(), Format::Table);
  REQUIRE(text.find("fitted to      1  100.0 %  100.0 %  10.0 %  10.0 %\n") != std::string::npos);
  REQUIRE(text.find("kept out       1  100.0 %  100.0 %  10.0 %  10.0 %\n") != std::string::npos);
  REQUIRE(text.find("a.cost       2 us    3 us  2.9 us to 3.1 us     7      1  -\n") !=
          std::string::npos);
  REQUIRE(text.find("b.cost     2 us  cited     4  because\n") != std::string::npos);
  REQUIRE(text.find("# 1 others, which no row moves with, are as shipped\n") != std::string::npos);
}

TEST_CASE("a calibration as CSV and JSON has every constant with its mark") {
  const std::string csv = render(small_report(), Format::Csv);
  REQUIRE(csv.find("constant,unit,mark,shipped,value,low,high,rows,files,rests_on,reason\n") == 0);
  REQUIRE(csv.find("\nc.cost,s,guess,") != std::string::npos);
  const auto json = nlohmann::json::parse(render(small_report(), Format::Json));
  REQUIRE(json["constants"].size() == 3);
  REQUIRE(json["constants"][0]["mark"] == "measured");
  REQUIRE(json["constants"][1]["low"].is_null());
  REQUIRE(json["tables"][0]["rows"][1]["use"] == "kept out");
  REQUIRE(json["errors"][0]["median_fitted"].get<double>() == Approx(std::log(1.1)));
}

}  // namespace trainyard
