// SPDX-License-Identifier: Apache-2.0
// Matching by exact size, and the two error measures on numbers that can be checked by hand.
#include "support/catch.h"

#include <cmath>
#include <utility>
#include <vector>

#include "calibration/measured/comparison.h"

namespace trainyard {
namespace {

using namespace literals;

MeasuredTable table_of(const std::vector<std::pair<Bytes, SimTime>>& rows) {
  MeasuredTable table;
  for (const auto& [size, time] : rows) {
    MeasuredRow measured;
    measured.size = size;
    measured.time = time;
    table.rows.push_back(measured);
  }
  return table;
}

TEST_CASE("rows are found by their exact size") {
  const MeasuredTable table = table_of({{8_B, 10_us}, {1_KiB, 20_us}, {1_MiB, 100_us}});
  REQUIRE(find_row(table, 1_KiB)->time == 20_us);
  REQUIRE(find_row(table, 1000_B) == nullptr);
  const RowComparison row{.size = 1_KiB, .predicted = 30_us, .measured = 20_us};
  REQUIRE(row.relative_error() == Approx(0.5));
}

TEST_CASE("of a size measured several times the row with the median time is compared") {
  const MeasuredTable odd = table_of({{8_B, 30_us}, {8_B, 10_us}, {8_B, 20_us}});
  REQUIRE(find_row(odd, 8_B)->time == 20_us);
  const MeasuredTable even = table_of({{8_B, 30_us}, {8_B, 10_us}});
  REQUIRE(find_row(even, 8_B)->time == 10_us);
  REQUIRE(find_row(even, 16_B) == nullptr);
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
