// SPDX-License-Identifier: Apache-2.0
// The three forms of one table, letter by letter.
#include "support/catch.h"

#include <limits>
#include <string>
#include <vector>

#include "report/formats/table.h"

namespace trainyard {
namespace {

Table sample() {
  Table table({{.name = "size", .key = "size_bytes", .unit = "(B)", .min_width = 6},
               {.name = "name", .key = "name", .align = Align::Left, .unit = ""},
               {.name = "time", .key = "time_us", .unit = "(us)"},
               {.name = "ok", .key = "ok", .unit = ""}});
  table.add_row({Cell::of(std::int64_t{8}), Cell::of("a \"b\", c"), {"1.50", 1.5}, {"yes", true}});
  table.add_row({Cell::of(std::int64_t{1048576}), Cell::of("d"), Cell::none(), {"no", false}});
  return table;
}

TEST_CASE("a column appears in the formats that show it, and times have a readable unit") {
  Table table({{.name = "for people", .key = "", .shown = Shown::People},
               {.name = "", .key = "for_programs", .shown = Shown::Programs}});
  table.add_row({Cell::of("a"), Cell::of("b")});
  REQUIRE(render_text(table) == "for people\n         a\n");
  REQUIRE(render_csv(table) == "for_programs\nb\n");
  REQUIRE(table.columns_in(Shown::Json) == std::vector<std::size_t>{1});
  REQUIRE(short_time(microseconds(1234)) == "1.234 ms");
  REQUIRE(short_time(seconds(2)) == "2 s");
  REQUIRE(short_size(mib(1536)) == "1.5 GiB");
  REQUIRE(short_size(mib(1)) == "1 MiB");
  REQUIRE(short_size(Bytes(512)) == "0.5 KiB");
}

TEST_CASE("text is aligned and has no trailing blanks") {
  REQUIRE(render_text(sample()) ==
          "   size  name      time   ok\n"
          "    (B)            (us)\n"
          "      8  a \"b\", c  1.50  yes\n"
          "1048576  d            -   no\n");
}

TEST_CASE("header lines can be marked with a hash") {
  REQUIRE(render_text(sample(), HeaderMark::Hash) ==
          "#  size  name      time   ok\n"
          "#   (B)            (us)\n"
          "      8  a \"b\", c  1.50  yes\n"
          "1048576  d            -   no\n");
  Table narrow({{.name = "size", .key = "size", .unit = ""}});
  narrow.add_row({Cell::of(std::int64_t{8})});
  REQUIRE(render_text(narrow, HeaderMark::Hash) == "# size\n     8\n");
}

TEST_CASE("CSV quotes what needs it and leaves missing values empty") {
  REQUIRE(render_csv(sample()) ==
          "size_bytes,name,time_us,ok\n"
          "8,\"a \"\"b\"\", c\",1.5,true\n"
          "1048576,d,,false\n");
}

TEST_CASE("JSON keeps types and the order of columns") {
  REQUIRE(render(sample(), Format::Json) == R"([
  {
    "size_bytes": 8,
    "name": "a \"b\", c",
    "time_us": 1.5,
    "ok": true
  },
  {
    "size_bytes": 1048576,
    "name": "d",
    "time_us": null,
    "ok": false
  }
]
)");
}

TEST_CASE("numbers keep all their digits, and what is no number is missing") {
  Table table({{.name = "x", .key = "x", .unit = ""}});
  table.add_row({{"0.1", 0.1}});
  table.add_row({{"1/3", 1.0 / 3.0}});
  table.add_row({{"inf", std::numeric_limits<double>::infinity()}});
  REQUIRE(render(table, Format::Csv) == "x\n0.1\n0.3333333333333333\n\n");
  REQUIRE(render(table, Format::Json) ==
          "[\n  {\n    \"x\": 0.1\n  },\n  {\n    \"x\": 0.3333333333333333\n  },\n  {\n    \"x\": "
          "null\n  }\n]\n");
}

TEST_CASE("a table without rows is a header, or an empty array") {
  const Table table({{.name = "x", .key = "x", .unit = ""}});
  REQUIRE(render(table, Format::Table) == "x\n");
  REQUIRE(render(table, Format::Csv) == "x\n");
  REQUIRE(render(table, Format::Json) == "[]\n");
}

TEST_CASE("formats have names") {
  REQUIRE(parse_format("table") == Format::Table);
  REQUIRE(parse_format("csv") == Format::Csv);
  REQUIRE(parse_format("json") == Format::Json);
  REQUIRE_FALSE(parse_format("JSON").has_value());
}

}  // namespace
}  // namespace trainyard
