// SPDX-License-Identifier: Apache-2.0
// The reader of measured transfers, and every row of validation/transfers against the model. The
// section "Transfers" of docs/accuracy/accuracy.md is written from the result (UPDATE_GOLDEN=1).
//
// A budget is the error that was seen when the row was added, rounded up to a whole per cent. It
// may only go down.
#include "support/catch.h"

#include "support/transfer_measurement.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/page_part.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kMeasurementRoot = source_dir();
constexpr const char* kBegin =
    "<!-- written by tests/calibration/measured/transfer_measurement_test.cpp -->\n";
constexpr const char* kEnd = "<!-- end of transfers -->\n";

std::vector<std::filesystem::path> files() {
  std::vector<std::filesystem::path> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(kMeasurementRoot / "validation/transfers")) {
    if (entry.path().extension() == ".yaml") {
      all.push_back(entry.path());
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string measured_text(const MeasuredTransfer& row) {
  const int digits = row.is_latency ? 3 : 1;
  const std::string min = fmt::format("{:.{}f}", row.min, digits);
  const std::string greatest = fmt::format("{:.{}f}", row.greatest, digits);
  return fmt::format("{}{}{} {}", min, row.min < row.greatest ? " to " : "",
                     row.min < row.greatest ? greatest : "", row.is_latency ? "us" : "GB/s");
}

TEST_CASE("measured transfers are predicted within their budgets") {
  const Catalogue catalogue = Catalogue::load(kMeasurementRoot / "configs/hardware");
  std::string text =
      "| transfer | measured | predicted | error | remark |\n|---|---|---|---|---|\n";
  std::vector<std::string> beyond;
  for (const std::filesystem::path& file : files()) {
    for (const MeasuredTransfer& row : load_transfers(file).rows) {
      const double predicted = predict(row, kMeasurementRoot / "configs/clusters", catalogue);
      const double error = row.error_percent(predicted);
      if (std::abs(error) > row.budget_percent) {
        beyond.push_back(fmt::format("{}: {}: {:.2f} %", file.stem().string(), row.what, error));
      }
      text += fmt::format("| {} | {} | {:.{}f} | {:+.1f} % | {} |\n", row.what, measured_text(row),
                          predicted, row.is_latency ? 3 : 1, error, row.remark);
    }
  }
  CAPTURE(beyond);
  hold_part("docs/accuracy/accuracy.md", kBegin, kEnd, text);
  REQUIRE(beyond.empty());
}

TransferMeasurements parse_measurement(const std::string& row) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("transfers-{}.yaml", getpid());
  std::ofstream(file) << "source: somebody\ncluster: dgx-1\nnodes: 1\nrows:\n  - " << row << "\n";
  const std::string text = file.string();
  struct Remove {
    const std::string& name;
    ~Remove() { std::filesystem::remove(name); }
  } const remove{text};
  return load_transfers(file);
}

std::string error_of_measurement(const std::string& row) {
  try {
    (void)parse_measurement(row);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("a row is read with its unit and its range") {
  const std::string ends = "{what: a, from: x, to: y, budget_percent: 3, measured: ";
  const MeasuredTransfer rate = parse_measurement(ends + "8 Gb/s}").rows.front();
  REQUIRE_FALSE(rate.is_latency);
  REQUIRE(rate.min == 1.0);
  REQUIRE(rate.cluster == "dgx-1");
  REQUIRE(rate.nodes == 1);
  const MeasuredTransfer time =
      parse_measurement(ends + "[500 ns, 2 us], both_ways: true}").rows.front();
  REQUIRE(time.is_latency);
  REQUIRE(time.both_ways);
  REQUIRE(time.min == 0.5);
  REQUIRE(time.greatest == 2.0);
  REQUIRE(time.error_percent(1.0) == 0.0);
  REQUIRE(time.error_percent(3.0) == Approx(50.0));
  REQUIRE(time.error_percent(0.25) == Approx(-50.0));
  REQUIRE(parse_measurement("{what: a, matrix: d2h, measured: 1 GB/s, budget_percent: 0}")
              .rows.front()
              .set == TransferSet::DeviceToHost);
}

TEST_CASE("what a row may not hold is an error that says where") {
  const std::string ends = "{what: a, from: x, to: y, budget_percent: 3, measured: ";
  REQUIRE(error_of_measurement(ends + "[2 us, 1 us]}").find("expected a range [least, greatest]") !=
          std::string::npos);
  REQUIRE(error_of_measurement(ends + "fast}").find("rows[0].measured: expected") !=
          std::string::npos);
  REQUIRE(error_of_measurement(ends + "1 us, too: 2}").find("too") != std::string::npos);
  REQUIRE(
      error_of_measurement("{what: a, from: x, measured: 1 us, budget_percent: 3}").find("to") !=
      std::string::npos);
}

TEST_CASE("a device that the cluster does not have is named") {
  const MeasuredTransfer row =
      parse_measurement("{what: a, from: server0/gpu0, to: y, budget_percent: 3, measured: 1 us}")
          .rows.front();
  REQUIRE_THROWS_WITH(predict(row, kMeasurementRoot / "configs/clusters",
                              Catalogue::load(kMeasurementRoot / "configs/hardware")),
                      "a: expected a device of DGX-1 V100, 100G RoCE, found \"y\"");
}

}  // namespace
}  // namespace trainyard
