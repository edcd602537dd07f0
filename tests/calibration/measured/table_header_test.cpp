// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/measured/table_header.h"

#include <string>

namespace trainyard {

TEST_CASE("a header whose # was lost in pasting is one by its words") {
  const std::string line =
      "       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time "
      "  algbw   busbw #wrong";
  const auto whole = parse_table_header("# " + line);
  const auto lost = parse_table_header(line);
  REQUIRE(whole.has_value());
  REQUIRE(lost.has_value());
  REQUIRE(whole->words == 13);
  REQUIRE(lost->words == 13);
  REQUIRE(lost->out == whole->out);
  REQUIRE(lost->in_place == whole->in_place);
  REQUIRE(lost->wrong == std::vector<std::size_t>{8, 12});
  const std::string under_mpirun = "[1,0]<stdout>: " + line;
  const auto prefixed = parse_table_header(under_mpirun);
  REQUIRE(prefixed.has_value());
  REQUIRE(without_prefix("[1,12]<stdout>:   8  2 float", prefixed->prefix) == "8  2 float");
  REQUIRE_FALSE(parse_table_header("size time algbw busbw").has_value());
  REQUIRE_FALSE(parse_table_header("the size and count of each type, time").has_value());
}

TEST_CASE("the words of a row begin with two numbers") {
  REQUIRE(looks_like_row({"8", "2", "float"}));
  REQUIRE(looks_like_row({"8"}));
  REQUIRE_FALSE(looks_like_row({"8", "float"}));
  REQUIRE_FALSE(looks_like_row({"size", "8"}));
  REQUIRE_FALSE(looks_like_row({}));
}

TEST_CASE("lines are split at their ends alone") {
  REQUIRE(split_lines("a\n\nb") == std::vector<std::string_view>{"a", "", "b"});
  REQUIRE(split_lines("").empty());
}

}  // namespace trainyard
