// SPDX-License-Identifier: Apache-2.0
// Printed numbers as intervals, completion of missing values, and the remarks.
#include "support/catch.h"

#include <string>
#include <vector>

#include "calibration/measured/measured_rows.h"

namespace trainyard {
namespace {

using namespace literals;

PrintedTime printed(const char* time, const char* algbw, const char* busbw) {
  return {.time_us = parse_printed(time),
          .algbw_gbps = parse_printed(algbw),
          .busbw_gbps = parse_printed(busbw)};
}

MeasuredTable table_for(Operation operation, int ranks) {
  MeasuredTable table;
  table.operation = operation;
  table.ranks = ranks;
  return table;
}

TEST_CASE("a printed number knows its rounding") {
  REQUIRE(parse_printed("91.10")->value == 91.1);
  REQUIRE(parse_printed("91.10")->half_step == Approx(0.005).epsilon(1e-4));
  REQUIRE(parse_printed("84625")->half_step == Approx(0.5).epsilon(1e-4));
  REQUIRE(parse_printed("5e-07")->value == 5e-7);
  for (const char* text : {"", "-1", "+1", "inf", "nan", "1.0x", "1,5", " 1", "N/A", ".5"}) {
    REQUIRE_FALSE(parse_printed(text).has_value());
  }
}

TEST_CASE("a consistent row gives no remark") {
  MeasuredTable table = table_for(Operation::AllReduce, 8);
  add_rows({{.size = Bytes(8'388'608),
             .out_of_place = printed("91.10", "92.08", "161.14"),
             .in_place = printed("94.94", "88.36", "154.63")}},
           table);
  REQUIRE(table.remarks.empty());
  REQUIRE(table.rows.size() == 1);
  REQUIRE(table.rows[0].time == 91100_ns);
  REQUIRE(table.rows[0].busbw_gbps == 161.14);
  REQUIRE(table.rows[0].in_place->time == 94940_ns);
}

TEST_CASE("a missing time is computed from either bandwidth and remarked") {
  MeasuredTable table = table_for(Operation::AllReduce, 8);
  add_rows({{.size = Bytes(1'000'000'000), .out_of_place = printed("", "100", ""), .in_place = {}},
            {.size = Bytes(1'000'000'000), .out_of_place = printed("", "", "175"), .in_place = {}}},
           table);
  REQUIRE(table.rows[0].time == 10_ms);
  REQUIRE(table.rows[0].busbw_gbps == Approx(175.0));
  REQUIRE(table.rows[1].time == 10_ms);
  REQUIRE(table.rows[1].algbw_gbps == Approx(100.0));
  REQUIRE(table.remarks ==
          std::vector<std::string>{"2 of 2 rows: time not printed, computed from the bandwidth "
                                   "(first: 1000000000 B)",
                                   "1000000000 B is measured 2 times: the row with the median time "
                                   "is compared"});
}

TEST_CASE("a missing bandwidth is computed from the time and remarked") {
  MeasuredTable table = table_for(Operation::AllGather, 4);
  add_rows({{.size = Bytes(1'000'000), .out_of_place = printed("10", "", ""), .in_place = {}}},
           table);
  REQUIRE(table.rows[0].algbw_gbps == Approx(100.0));
  REQUIRE(table.rows[0].busbw_gbps == Approx(75.0));
  REQUIRE(table.remarks == std::vector<std::string>{"1 of 1 rows: a bandwidth not printed, "
                                                    "computed (first: 1000000 B)"});
}

TEST_CASE("rows that contradict themselves are kept and remarked") {
  MeasuredTable table = table_for(Operation::AllReduce, 8);
  add_rows({{.size = Bytes(8'388'608),
             .out_of_place = printed("91.10", "92.00", "161.00"),
             .in_place = {}},
            {.size = Bytes(16'777'216),
             .out_of_place = printed("182.2", "92.08", "172.65"),
             .in_place = printed("100.0", "167.77", "293.60")}},
           table);
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.remarks ==
          std::vector<std::string>{
              "1 of 2 rows: algbw does not agree with bytes / time (first: 8388608 B)",
              "1 of 2 rows: busbw does not agree with algbw and the number of ranks (first: "
              "16777216 B)",
              "1 of 2 rows: out-of-place and in-place times differ by more than a quarter (first: "
              "16777216 B)"});
}

TEST_CASE("a time is not computed from a bandwidth of one digit") {
  MeasuredTable table = table_for(Operation::AllReduce, 16);
  add_rows({{.size = Bytes(8), .out_of_place = printed("", "", "0"), .in_place = {}},
            {.size = Bytes(4096), .out_of_place = printed("", "", "0.01"), .in_place = {}},
            {.size = Bytes(1 << 20),
             .out_of_place = printed("", "", "1.38"),
             .in_place = printed("", "", "0.01")}},
           table);
  REQUIRE(table.rows.size() == 1);
  REQUIRE(table.rows[0].size == 1_MiB);
  REQUIRE_FALSE(table.rows[0].in_place.has_value());
  REQUIRE(table.remarks ==
          std::vector<std::string>{"2 of 3 rows: left out, no time and a bandwidth rounded by more "
                                   "than 5 % (first: 8 B)",
                                   "1 of 3 rows: time not printed, computed from the bandwidth "
                                   "(first: 1048576 B)"});
}

TEST_CASE("a row without a positive time is unusable") {
  const auto row = [](PrintedTime out) {
    return PrintedRow{.size = Bytes(8), .out_of_place = out, .in_place = std::nullopt};
  };
  REQUIRE_FALSE(unusable(row(printed("1", "", "")), std::nullopt).has_value());
  REQUIRE_FALSE(unusable(row(printed("", "1", "")), std::nullopt).has_value());
  REQUIRE_FALSE(unusable(row(printed("", "", "1")), 1.75).has_value());
  REQUIRE(unusable(row(printed("", "", "1")), std::nullopt).has_value());
  REQUIRE(unusable(row(printed("", "", "")), 1.75).has_value());
  REQUIRE(unusable(row(printed("0", "1", "1")), 1.75).has_value());
  REQUIRE(unusable(row(printed("99999999999999999", "1", "1")), 1.75).has_value());
}

TEST_CASE("the factor is unknown without operation or ranks") {
  REQUIRE(factor_of(table_for(Operation::AllReduce, 8)) == 1.75);
  REQUIRE_FALSE(factor_of(table_for(Operation::AllReduce, 1)).has_value());
  REQUIRE_FALSE(factor_of(MeasuredTable()).has_value());
}

}  // namespace
}  // namespace trainyard
