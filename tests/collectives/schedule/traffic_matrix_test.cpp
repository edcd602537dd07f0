// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/schedule/traffic_matrix.h"

#include "sim/config_error.h"

namespace trainyard {
namespace {

TEST_CASE("a matrix is read from blanks or commas, and the size is the most of a rank") {
  const TrafficMatrix matrix =
      read_traffic_matrix("# to 0, 1, 2\n0, 10, 20\n\n1\t2 3 # rank 1\r\n4,5,60", "m.csv");
  REQUIRE(matrix.ranks == 3);
  REQUIRE(matrix.at(0, 2) == Bytes(20));
  REQUIRE(matrix.at(2, 0) == Bytes(4));
  REQUIRE(matrix.sent(0) == Bytes(30));
  REQUIRE(matrix.sent(2) == Bytes(69));
  REQUIRE(matrix.received(1) == Bytes(17));
  REQUIRE(matrix.received(2) == Bytes(83));
  REQUIRE(matrix.largest() == Bytes(83));
  REQUIRE(read_traffic_matrix("0", "m").ranks == 1);
}

TEST_CASE("a mistake in a matrix is named with its line and column") {
  const auto read = [](std::string_view text) { return read_traffic_matrix(text, "m.csv"); };
  REQUIRE_THROWS_WITH(read(""), "m.csv: expected a line of bytes for each rank, found none");
  REQUIRE_THROWS_WITH(read("# nothing\n"),
                      "m.csv: expected a line of bytes for each rank, found none");
  REQUIRE_THROWS_WITH(read("1 2\n3 x4\n"),
                      "m.csv:2:3: expected a number of bytes from 0 to 274877906944, found \"x4\"");
  REQUIRE_THROWS_WITH(read("1 -2\n3 4\n"),
                      "m.csv:1:3: expected a number of bytes from 0 to 274877906944, found \"-2\"");
  REQUIRE_THROWS_WITH(
      read("1 274877906945\n3 4\n"),
      "m.csv:1:3: expected a number of bytes from 0 to 274877906944, found \"274877906945\"");
  REQUIRE_THROWS_WITH(
      read("1 2.5"), "m.csv:1:3: expected a number of bytes from 0 to 274877906944, found \"2.5\"");
  REQUIRE_THROWS_WITH(read("1 2\n3\n"),
                      "m.csv:2:1: expected 2 numbers as in the lines before, found 1");
  REQUIRE_THROWS_WITH(read("1 2\n3 4\n5 6\n"),
                      "m.csv:3:1: expected at most 2 lines, as many as numbers in a line, found "
                      "more");
  REQUIRE_THROWS_WITH(read("1 2\n"),
                      "m.csv:1: expected as many lines as numbers in a line, 2, found 1");
}

}  // namespace
}  // namespace trainyard
