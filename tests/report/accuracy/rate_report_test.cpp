// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/accuracy/rate_report.h"

#include <cmath>
#include <string>

namespace trainyard {
namespace {

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

TEST_CASE("the report of rates says what is fitted, what stays and why") {
  const std::string text = rate_text(two_rates());
  INFO(text);
  REQUIRE(text.find("# Rates of kernels of H100-SXM") == 0);
  REQUIRE(text.find("  0.670    0.780  0.770  0.790") != std::string::npos);
  REQUIRE(text.find("no row moves with it") != std::string::npos);
  REQUIRE(text.find("divided by 0.900") != std::string::npos);
}

TEST_CASE("the JSON of rates has each row with its times") {
  const Json json = rate_json(two_rates());
  const Json row = json["tables"][0]["rows"][0];
  REQUIRE(row["what"] == "m 1, n 2, k 3");
  REQUIRE(row["use"] == "fitted");
  REQUIRE(row["shipped_us"].get<double>() == Approx(3.0));
  REQUIRE(row["fitted_us"].get<double>() == Approx(1.0));
  REQUIRE(json["rates"][1]["value"].get<double>() == Approx(4e-6));
  REQUIRE(json["rates"][1]["low"].is_null());
}

}  // namespace trainyard
