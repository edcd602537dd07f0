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

RateCalibration two_rates() {
  RateCalibration made;
  made.gpu = "H100-SXM";
  made.rates = {{.name = "hopper.gemm",
                 .shipped = 0.67,
                 .value = 0.78,
                 .low = 0.77,
                 .high = 0.79,
                 .is_fitted = true,
                 .rows = 12},
                {.name = "hopper.gemm_start",
                 .is_time = true,
                 .shipped = 4e-6,
                 .value = 4e-6,
                 .reason = "no row moves with it"}};
  RateTable table{.id = "gpu.gemm.bf16", .rows = {}, .warm = 0.9};
  table.rows.push_back({.text = "m 1, n 2, k 3", .attention = {}, .measured = SimTime(2'000'000)});
  made.tables = {table};
  made.fit.noise = 0.02;
  made.fit.tables = {{{.use = RowUse::Fitted, .shipped = std::log(1.5), .fitted = std::log(0.5)}}};
  return made;
}

}  // namespace

TEST_CASE("a calibration is shown with its errors, what is fitted and what is not") {
  const std::string text = render(small_report(), Format::Table);
  REQUIRE(text.find("fitted to      1  100.0 %  100.0 %  10.0 %  10.0 %\n") != std::string::npos);
  REQUIRE(text.find("kept out       1  100.0 %  100.0 %  10.0 %  10.0 %\n") != std::string::npos);
  REQUIRE(
      text.find("a.cost    measured     2 us    3 us  2.9 us  3.1 us     7      1  -     -\n") !=
      std::string::npos);
  REQUIRE(text.find("b.cost    cited        2 us    2 us       -       -     4      1  -     "
                    "because\n") != std::string::npos);
  REQUIRE(text.find("# Note: 1 others, which no row moves with, are as shipped\n") !=
          std::string::npos);
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

TEST_CASE("the report of rates says what is fitted, what stays and why") {
  const std::string text =
      render(CalibrationReport{.cluster = "box", .rates = two_rates()}, Format::Table);
  INFO(text);
  REQUIRE(text.find("# Rates of kernels of H100-SXM") != std::string::npos);
  REQUIRE(text.find("  0.670    0.780  0.770  0.790") != std::string::npos);
  REQUIRE(text.find("no row moves with it") != std::string::npos);
  REQUIRE(text.find("divided by 0.900") != std::string::npos);
}

TEST_CASE("the JSON of rates has each row with its times") {
  const auto json = nlohmann::json::parse(
      render(CalibrationReport{.cluster = "box", .rates = two_rates()}, Format::Json))["gpu_rates"];
  const auto& row = json["tables"][0]["rows"][0];
  REQUIRE(row["what"] == "m 1, n 2, k 3");
  REQUIRE(row["use"] == "fitted");
  REQUIRE(row["shipped_us"].get<double>() == Approx(3.0));
  REQUIRE(row["fitted_us"].get<double>() == Approx(1.0));
  REQUIRE(json["rates"][1]["value"].get<double>() == Approx(4e-6));
  REQUIRE(json["rates"][1]["low"].is_null());
}

}  // namespace trainyard
