// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/formats/csv.h"

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard {

TEST_CASE("what is printed as CSV is read again", "[csv]") {
  Table table({{.name = "a", .key = "a"}, {.name = "b", .key = "b, of all"}});
  table.add_row({Cell::of("plain"), Cell::of("a, \"b\"\nc")});
  table.add_row({Cell::of(std::int64_t{-7}), {"", 0.1}});
  table.add_row({Cell::none(), {"", true}});
  const std::string text = render_csv(table);
  const auto records = parse_csv(text);
  REQUIRE(records.size() == 4);
  REQUIRE(records[0] == std::vector<std::string>{"a", "b, of all"});
  REQUIRE(records[1] == std::vector<std::string>{"plain", "a, \"b\"\nc"});
  Table again({{.name = "a", .key = "a"}, {.name = "b", .key = "b, of all"}});
  for (std::size_t row = 1; row < records.size(); ++row) {
    again.add_row({typed_cell(records[row][0]), typed_cell(records[row][1])});
  }
  REQUIRE(render_csv(again) == text);
  REQUIRE(render(again, Format::Json) == render(table, Format::Json));
}

TEST_CASE("fields are what they look like, if they print again as they stand", "[csv]") {
  REQUIRE(std::holds_alternative<std::monostate>(typed_cell("").value));
  REQUIRE(typed_cell("true").value == CellValue(true));
  REQUIRE(typed_cell("12").value == CellValue(std::int64_t{12}));
  REQUIRE(typed_cell("1.5").value == CellValue(1.5));
  for (const char* text : {"007", "+1", "1.50", "400 Gb/s", "0x10", "nan "}) {
    REQUIRE(typed_cell(text).value == CellValue(std::string(text)));
  }
}

TEST_CASE("records end where lines do", "[csv]") {
  REQUIRE(parse_csv("").empty());
  REQUIRE(parse_csv("a,b").size() == 1);
  REQUIRE(parse_csv("a,b\n,\n") == std::vector<std::vector<std::string>>{{"a", "b"}, {"", ""}});
}

}  // namespace trainyard
