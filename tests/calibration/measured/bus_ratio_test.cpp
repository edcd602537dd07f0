// SPDX-License-Identifier: Apache-2.0
// Rows are made by the formulas of nccl-tests (doc/PERFORMANCE.md) and rounded as it prints them.
#include "support/catch.h"

#include "calibration/measured/bus_ratio.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <string>
#include <vector>

#include "calibration/measured/measurement.h"
#include "support/paths.h"

namespace trainyard {
namespace {

// Rows as printed with two decimals, rising from 0.01 to 100 GB/s.
std::vector<PrintedRow> printed_rows(double factor) {
  std::vector<PrintedRow> rows;
  for (double algbw = 0.01; algbw < 150.0; algbw *= 2.3) {
    PrintedRow row{.size = kib(1), .out_of_place = {}, .in_place = {}};
    row.out_of_place.algbw_gbps = parse_printed(fmt::format("{:.2f}", algbw));
    row.out_of_place.busbw_gbps = parse_printed(fmt::format("{:.2f}", algbw * factor));
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("busbw over algbw tells the number of ranks of every operation that has a factor") {
  for (const Operation operation : kOperations) {
    const double two = bus_factor(operation, 2);
    if (two == bus_factor(operation, 3)) {
      continue;
    }
    for (int ranks = 1; ranks <= 40; ++ranks) {
      INFO(to_string(operation) << " of " << ranks);
      const auto ratio = bus_ratio_of(printed_rows(bus_factor(operation, ranks)));
      REQUIRE(ratio.has_value());
      REQUIRE(is_of_one_rank(*ratio) == (ranks == 1));
      const auto range = ranks_of(*ratio, operation);
      REQUIRE(range.has_value());
      REQUIRE(range->first == ranks);
      REQUIRE(range->last == ranks);
      REQUIRE(ratio_says_otherwise(*ratio, operation, ranks).has_value() == (ranks == 1));
    }
  }
}

TEST_CASE("a ratio that contradicts names the right operation or number") {
  const auto eight = bus_ratio_of(printed_rows(1.75));
  REQUIRE(eight.has_value());
  REQUIRE(ratio_says_otherwise(*eight, Operation::AllReduce, 32) ==
          "all_reduce of 8 ranks (busbw / algbw is 1.75)");
  REQUIRE(ratio_says_otherwise(*eight, Operation::AllGather, 8) ==
          "all_reduce of 8 ranks (busbw / algbw is 1.75)");
  REQUIRE_FALSE(ratio_says_otherwise(*eight, Operation::AllReduce, std::nullopt).has_value());
  const auto one = bus_ratio_of(printed_rows(0.0));
  REQUIRE(one.has_value());
  REQUIRE(ratio_says_otherwise(*one, Operation::AllReduce, 8) ==
          "one rank: busbw is 0 on every row, as each process ran alone");
  const auto same = bus_ratio_of(printed_rows(1.0));
  REQUIRE(same.has_value());
  REQUIRE_FALSE(ratio_says_otherwise(*same, Operation::Broadcast, 16).has_value());
  REQUIRE(ratio_says_otherwise(*same, Operation::AllReduce, 16) ==
          "all_reduce of 2 ranks (busbw / algbw is 1)");
}

TEST_CASE("few damaged rows do not change what the ratio says, many leave it open") {
  std::vector<PrintedRow> rows = printed_rows(1.875);
  rows[rows.size() - 2].out_of_place.busbw_gbps = parse_printed("3.00");
  const auto ratio = bus_ratio_of(rows);
  REQUIRE(ratio.has_value());
  REQUIRE(ranks_of(*ratio, Operation::AllReduce)->first == 16);
  for (std::size_t row = 0; row < rows.size(); row += 2) {
    rows[row].out_of_place.busbw_gbps = parse_printed(std::to_string(500 + row));
  }
  REQUIRE_FALSE(bus_ratio_of(rows).has_value());
  REQUIRE_FALSE(bus_ratio_of({}).has_value());
  // Rows without digits say nothing.
  const std::vector<PrintedRow> small = printed_rows(1.75);
  REQUIRE_FALSE(bus_ratio_of(std::span(small).first(1)).has_value());
}

TEST_CASE("rows that divide other bytes by the time say nothing about ranks") {
  MeasuredTable table;
  std::vector<PrintedRow> rows(4);
  for (PrintedRow& row : rows) {
    row.size = mib(1);
    row.out_of_place = {.time_us = parse_printed("100.0"),
                        .algbw_gbps = parse_printed("9.61"),
                        .busbw_gbps = parse_printed("9.61")};
  }
  add_rows(rows, table);
  REQUIRE_FALSE(table.bus_ratio.has_value());
  MeasuredTable whole;
  for (PrintedRow& row : rows) {
    row.out_of_place.algbw_gbps = parse_printed("10.49");
  }
  add_rows(rows, whole);
  REQUIRE(whole.bus_ratio.has_value());
}

TEST_CASE("no measured table contradicts what it says of itself") {
  std::size_t told = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(source_dir() / "validation" / "nccl")) {
    if (file.path().extension() != ".yaml") {
      continue;
    }
    const MeasuredTable table = load_measurement(file.path());
    INFO(file.path().filename().string());
    if (table.bus_ratio) {
      ++told;
      REQUIRE_FALSE(
          ratio_says_otherwise(*table.bus_ratio, table.operation.value(), table.ranks).has_value());
    }
  }
  REQUIRE(told > 50);
}

}  // namespace trainyard
