// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/measured/measured_damage.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

MeasuredRow row(std::int64_t size, double us, std::size_t line) {
  return {.size = Bytes(size),
          .time = SimTime(static_cast<std::int64_t>(us * 1e6)),
          .algbw_gbps = static_cast<double>(size) / us / 1e3,
          .busbw_gbps = 0.0,
          .in_place = std::nullopt,
          .line = line};
}

std::vector<std::string> repaired(MeasuredTable& table) {
  std::vector<std::string> warnings;
  repair(table, "a.log", warnings);
  return warnings;
}

}  // namespace

TEST_CASE("a sound table is not changed by repairs") {
  MeasuredTable table;
  table.rows = {row(1024, 10.0, 5), row(2048, 11.0, 6)};
  REQUIRE(repaired(table).empty());
  REQUIRE(table.rows.size() == 2);
}

TEST_CASE("a row whose bandwidth is not its size over its time is left out by name") {
  MeasuredTable table;
  table.rows = {row(1 << 20, 50.0, 5), row(1 << 21, 80.0, 6), row(1 << 22, 150.0, 7)};
  table.rows[1].algbw_gbps = 12.0;
  REQUIRE(repaired(table) ==
          std::vector<std::string>{"a.log:6: left out: expected 26.21 GB/s of 2097152 B in 80.00 "
                                   "us, found 12.00"});
  REQUIRE(table.rows.size() == 2);
}

TEST_CASE("bandwidths that all disagree are a habit of the program") {
  MeasuredTable table;
  table.rows = {row(1 << 20, 50.0, 5), row(1 << 21, 80.0, 6)};
  table.rows[0].algbw_gbps *= 0.9;
  table.rows[1].algbw_gbps *= 0.9;
  REQUIRE(repaired(table).empty());
}

TEST_CASE("of a repeated size the median stays, and sizes are put in order") {
  MeasuredTable table;
  table.rows = {row(4096, 12.0, 5), row(1024, 10.0, 6), row(1024, 30.0, 7), row(1024, 11.0, 8)};
  REQUIRE(repaired(table) ==
          std::vector<std::string>{
              "a.log:6: left out: 1024 B is there again, line 8 has the median time",
              "a.log:7: left out: 1024 B is there again, line 8 has the median time",
              "a.log:8: the rows are not in the order of their sizes: sorted"});
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.rows[0].line == 8);
}

}  // namespace trainyard
