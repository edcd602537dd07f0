// SPDX-License-Identifier: Apache-2.0
// One document in its three forms, letter by letter.
#include "support/catch.h"

#include "report/formats/document.h"

#include <string>
#include <vector>

#include "report/formats/json.h"

namespace trainyard {
namespace {

Document example() {
  Document document{.heading = {"Simulated", ""}, .notes = {"a note"}};
  document.add("cluster", "C");
  document.add("model", "M", Shown::Json);
  document.add_detail("plan", {{"tensor", 8}});
  document.add(RunInputs{.settings = {"a.b=1"}, .options = {{"nodes", "2"}}});
  document.add(Figure{.key = "step_time_s",
                      .cell = {"1500.0000", 1.5},
                      .label = "step time",
                      .unit = "ms",
                      .remark = ", twice"});
  document.add(Figure{.key = "energy_j",
                      .cell = {"unknown", {}},
                      .label = "energy",
                      .remark = ": no watts",
                      .group = "cost"});
  document.add(
      Figure{.cell = Cell::of(std::string("1.5 s")), .label = "step", .shown = Shown::Page});
  document.add(Parts{.key = "step_time",
                     .whole = milliseconds(1500),
                     .times = {{"linear", milliseconds(1500)}, {"data", SimTime()}},
                     .rank = 3});
  return document;
}

Table pairs() {
  Table table({{.name = "from", .key = "from"},
               {.name = "mark", .key = "", .align = Align::Left, .shown = Shown::People},
               {.name = "", .key = "to", .shown = Shown::Programs}});
  table.add_row({Cell::count(1), {"*", {}}, Cell::count(2)});
  return table;
}

}  // namespace

TEST_CASE("the text of a document has its heading, labelled figures, parts and notes",
          "[document]") {
  REQUIRE(render(example(), Format::Table) ==
          "# Simulated\n"
          "#\n"
          "step time                 1500.0000 ms, twice\n"
          "energy                      unknown: no watts\n"
          "\n"
          "part                time    share\n"
          "                     (s)      (%)\n"
          "linear            1.5000   100.00\n"
          "# Note: a note\n");
}

TEST_CASE("CSV of a document is a row of its figures and parts", "[document]") {
  REQUIRE(render(example(), Format::Csv) ==
          "cluster,step_time_s,energy_j,linear_s,data_s\n"
          "C,1.5,,1.5,0\n");
}

TEST_CASE("JSON of a document has every entry, in order", "[document]") {
  Document document = example();
  document.estimates = {"part: key = value: source"};
  REQUIRE(Json::parse(render(document, Format::Json)).dump() ==
          R"({"cluster":"C","model":"M","plan":{"tensor":8},"settings":["a.b=1"],)"
          R"("options":{"nodes":"2"},"step_time_s":1.5,"cost":{"energy_j":null},)"
          R"("step_time_ps":1500000000000,"breakdown_rank":3,)"
          R"("breakdown_s":{"linear":1.5,"data":0.0},)"
          R"("breakdown_ps":{"linear":1500000000000,"data":0},)"
          R"("estimates":["part: key = value: source"],"notes":["a note"]})");
}

TEST_CASE("a table of a document is its CSV, and columns appear where they are shown",
          "[document]") {
  Document document{.heading = {"Two"}};
  document.add("cluster", "C");
  document.add(NamedTable{.key = "text", .table = pairs(), .shown = Shown::Json});
  document.add(NamedTable{
      .key = "rows", .table = pairs(), .title = "Rows", .is_apart = true, .remarks = {"below"}});
  document.add(Figure{.key = "total", .cell = Cell::number(3.0, 1), .label = "total"});
  REQUIRE(render(document, Format::Csv) == "from,to\n1,2\n");
  REQUIRE(render(document, Format::Table) ==
          "# Two\n\n# Rows\nfrom  mark\n   1  *\n# below\n\n"
          "total                           3.0\n");
  REQUIRE(Json::parse(render(document, Format::Json))["rows"].dump() == R"([{"from":1,"to":2}])");
}

TEST_CASE("people see a table with a title only if it has rows", "[document]") {
  Document document;
  document.add_table("Nothing", Table({column("x", "x")}), Shown::All, "nothing");
  document.add_card("most", "7 GB/s");
  document.add(Lines{.title = "Parts", .lines = {"one"}});
  document.notes = {"two\nlines"};
  REQUIRE(render(document, Format::Table) == "Parts\n  one\n# Note: two lines\n");
  REQUIRE(Json::parse(render(document, Format::Json))["nothing"].empty());
}

TEST_CASE("a table has the columns of the fields of its items", "[document]") {
  const auto fields_of = [](int value) {
    return std::vector<Field>{{column("n", "n"), Cell::count(value)},
                              {column("odd", "odd"), Cell::yes_no(value % 2 == 1)}};
  };
  REQUIRE(render_text(table_of(std::vector<int>{1, 2}, fields_of)) == "n  odd\n1  yes\n2   no\n");
  REQUIRE(render_csv(table_of(std::vector<int>(), fields_of)) == "n,odd\n");
}

TEST_CASE("a value that fills its line stays apart from its label", "[document]") {
  Document document{.value_end = 8};
  document.add(Figure{.cell = Cell::of(std::string("123456")), .label = "price", .unit = "EUR"});
  REQUIRE(render(document, Format::Table) == "price 123456 EUR\n");
  REQUIRE(value_text(std::get<Figure>(document.entries.front())) == "123456 EUR");
}

}  // namespace trainyard
