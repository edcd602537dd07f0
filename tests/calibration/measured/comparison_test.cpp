// SPDX-License-Identifier: Apache-2.0
// Matching by exact size, and the two error measures on numbers that can be checked by hand.
#include "support/catch.h"

#include <cmath>
#include <vector>

#include "calibration/measured/comparison.h"

namespace trainyard {
namespace {

using namespace literals;

MeasuredTable table_of(const std::vector<PredictedRow>& rows) {
  MeasuredTable table;
  for (const PredictedRow& row : rows) {
    MeasuredRow measured;
    measured.size = row.size;
    measured.time = row.time;
    table.rows.push_back(measured);
  }
  return table;
}

TEST_CASE("sizes are matched exactly and what has no partner is listed") {
  const MeasuredTable table = table_of({{8_B, 10_us}, {1_KiB, 20_us}, {1_MiB, 100_us}});
  const std::vector<PredictedRow> predictions = {{1_KiB, 30_us}, {1000_B, 5_us}, {8_B, 9_us}};
  const Comparison comparison = compare(predictions, table);
  REQUIRE(comparison.rows.size() == 2);
  REQUIRE(comparison.rows[0].size == 1_KiB);
  REQUIRE(comparison.rows[0].relative_error() == Approx(0.5));
  REQUIRE(comparison.rows[1].size == 8_B);
  REQUIRE(comparison.rows[1].relative_error() == Approx(-0.1));
  REQUIRE(comparison.predicted_not_measured == std::vector<Bytes>{1000_B});
  REQUIRE(comparison.measured_not_predicted == std::vector<Bytes>{1_MiB});
}

TEST_CASE("of a size measured several times the row with the median time is compared") {
  const MeasuredTable odd = table_of({{8_B, 30_us}, {8_B, 10_us}, {8_B, 20_us}});
  REQUIRE(find_row(odd, 8_B)->time == 20_us);
  const MeasuredTable even = table_of({{8_B, 30_us}, {8_B, 10_us}});
  REQUIRE(find_row(even, 8_B)->time == 10_us);
  REQUIRE(find_row(even, 16_B) == nullptr);
  REQUIRE(compare({}, even).measured_not_predicted == std::vector<Bytes>{8_B});
}

TEST_CASE("the summary separates small and large messages at 64 KiB") {
  std::vector<RowComparison> rows;
  rows.push_back({.size = Bytes(kib(64).count() - 1), .predicted = 20_us, .measured = 10_us});
  rows.push_back({.size = 64_KiB, .predicted = 10_us, .measured = 40_us});
  rows.push_back({.size = 1_GiB, .predicted = 80_us, .measured = 10_us});
  rows.push_back({.size = 1_MiB, .predicted = 10_us, .measured = 10_us});
  const ComparisonSummary summary = summarise(rows);
  REQUIRE(summary.small.rows == 1);
  REQUIRE(summary.small.median == Approx(std::log(2.0)));
  REQUIRE(summary.small.p90 == Approx(std::log(2.0)));
  REQUIRE(summary.large.rows == 3);
  REQUIRE(summary.large.median == Approx(std::log(4.0)));  // Too short counts like too long.
  REQUIRE(summary.large.p90 == Approx(std::log(8.0)));
  REQUIRE(summary.largest.has_value());
  REQUIRE(summary.largest->size == 1_GiB);
  REQUIRE(summary.largest->relative_error() == Approx(7.0));
}

TEST_CASE("the 90th percentile leaves out one row of ten") {
  std::vector<RowComparison> rows(9, {.size = 1_MiB, .predicted = 11_us, .measured = 10_us});
  rows.push_back({.size = 1_MiB, .predicted = 1000_us, .measured = 10_us});
  REQUIRE(summarise(rows).large.p90 == Approx(std::log(1.1)));
  rows.pop_back();
  rows.back().predicted = 1000_us;
  REQUIRE(summarise(rows).large.p90 == Approx(std::log(100.0)));
}

TEST_CASE("a summary of nothing is empty") {
  const ComparisonSummary summary = summarise({});
  REQUIRE(summary.small.rows == 0);
  REQUIRE(summary.large.rows == 0);
  REQUIRE_FALSE(summary.largest.has_value());
}

}  // namespace
}  // namespace trainyard
