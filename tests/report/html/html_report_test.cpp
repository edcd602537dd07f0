// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/html/html_report.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/formats/document.h"

namespace trainyard {
namespace {

HtmlReport example() {
  Table table({{.name = "size", .key = "size", .unit = "(B)"},
               {.name = "who", .key = "who", .align = Align::Left}});
  table.add_row({Cell::of(std::int64_t{8}), Cell::of("<b>&</script>")});
  return {.title = "a </script><script>alert(1)</script>",
          .subtitle = "b",
          .summary = {{"step", "1 s"}},
          .breakdown = {{"linear", seconds(1)}, {"data", SimTime()}},
          .curves = {{.name = "ring",
                      .points = {{.size = mib(1), .busbw_gbps = 2.0, .band = {{1.0, 3.0}}}}}},
          .tables = {{.title = "T", .note = "", .table = table}},
          .notes = {"n"}};
}

// What is between the tags of the data.
nlohmann::json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

}  // namespace

TEST_CASE("inputs and estimates are tables", "[html-report]") {
  const HtmlTable inputs = html_inputs({.settings = {"a.b=c=d"}, .resources = {{"nic", "1"}}});
  REQUIRE(inputs.table.rows()[0][0].text == "--set a.b");
  REQUIRE(inputs.table.rows()[0][1].text == "c=d");
  const HtmlTable estimates = html_estimates({"NVLink4: latency = 1us: a guess: of ours"});
  REQUIRE(estimates.table.rows().size() == 1);
  REQUIRE(estimates.table.rows()[0][0].text == "NVLink4");
  REQUIRE(estimates.table.rows()[0][1].text == "latency = 1us");
  REQUIRE(estimates.table.rows()[0][2].text == "a guess: of ours");
}

TEST_CASE("the page of a document has what it shows to people", "[html-report]") {
  Document document{.title = "T", .subtitle = "S", .notes = {"n"}};
  document.add("key", 1.0);
  document.add(Figure{.key = "time_s",
                      .cell = Cell::number(1.0, 2),
                      .label = "time",
                      .unit = "s",
                      .remark = ", of two"});
  document.add(Figure{.cell = Cell::number(2.0, 2), .label = "text", .shown = Shown::NotPage});
  document.add(RunInputs{});
  document.add(Parts{.key = "time", .whole = seconds(1), .times = {{"linear", seconds(1)}}});
  Table table({{.name = "a", .key = "a"}, {.name = "b", .key = "b", .shown = Shown::Programs}});
  table.add_row({Cell::count(1), Cell::count(2)});
  document.add(NamedTable{.key = "rows", .table = table, .title = "Rows"});
  const HtmlReport page = html_page(document);
  REQUIRE(page.title == "T");
  REQUIRE(page.subtitle == "S");
  REQUIRE(page.summary ==
          std::vector<std::pair<std::string, std::string>>{{"time", "1.00 s, of two"}});
  REQUIRE(page.breakdown.size() == 1);
  REQUIRE(page.tables.size() == 2);
  REQUIRE(page.tables[0].title == "Inputs");
  REQUIRE(page.tables[1].title == "Rows");
  REQUIRE(page.notes == document.notes);
  const nlohmann::json data = data_of(render_html(page, ""));
  REQUIRE(data["tables"][1]["columns"] == nlohmann::json{"a"});
  REQUIRE(data["tables"][1]["rows"] == nlohmann::json::parse(R"([["1"]])"));
}

TEST_CASE("the page of a document without a title has its heading, and its lines as lists",
          "[html-report]") {
  Document document{.heading = {"Explained: a step", "", "how"}};
  document.add(Lines{.title = "Not in this model:", .lines = {"a", "b"}});
  Table table(std::vector<Column>{{.name = "a", .key = "a"}});
  table.add_row({Cell::count(1)});
  document.add(NamedTable{.key = "", .table = table, .remarks = {"r"}, .page_title = "Own"});
  const HtmlReport page = html_page(document);
  REQUIRE(page.title == "Explained: a step");
  REQUIRE(page.subtitle == "how");
  REQUIRE(page.tables.size() == 2);
  REQUIRE(page.tables[0].title == "Not in this model");
  REQUIRE(page.tables[0].remarks == std::vector<std::string>{"a", "b"});
  REQUIRE(page.tables[1].title == "Own");
  REQUIRE(page.tables[1].remarks == std::vector<std::string>{"r"});
}

TEST_CASE("columns that say nothing in any row are not on the page", "[html-report]") {
  Table table({{.name = "a", .key = "a"}, {.name = "b", .key = "b"}, {.name = "c", .key = "c"}});
  table.add_row({Cell::count(1), Cell::none(), Cell::none()});
  table.add_row({Cell::count(2), Cell::of(""), Cell::count(3)});
  HtmlReport page{.title = "a < b & c", .subtitle = ""};
  page.tables.push_back({.title = "T", .note = "", .table = table});
  const std::string text = render_html(page, "");
  const nlohmann::json data = data_of(text);
  REQUIRE(data["tables"][0]["columns"] == nlohmann::json::parse(R"(["a", "c"])"));
  REQUIRE(data["tables"][0]["rows"] == nlohmann::json::parse(R"([["1", "-"], ["2", "3"]])"));
  REQUIRE(text.find("<title>a &lt; b &amp; c</title>") != std::string::npos);
}

TEST_CASE("a page holds its data, its library and nothing that is fetched", "[html-report]") {
  const std::string page = render_html(example(), "var d3={version:\"3.5\"};");
  REQUIRE(page.rfind("<!DOCTYPE html>", 0) == 0);
  REQUIRE(page.find("var d3={version") != std::string::npos);
  for (const char* const fetched : {"http://", "https://", "src=", "@import", "url("}) {
    REQUIRE(page.find(fetched) == std::string::npos);
  }
  const auto data = data_of(page);
  REQUIRE(data["title"] == "a </script><script>alert(1)</script>");
  REQUIRE(data["breakdown"].size() == 1);
  REQUIRE(data["curves"][0]["points"][0][3] == 3.0);
  REQUIRE(data["tables"][0]["columns"][0] == "size (B)");
  REQUIRE(data["tables"][0]["numeric"][1] == false);
  REQUIRE(data["tables"][0]["rows"][0][1] == "<b>&</script>");
}

TEST_CASE("no text of a page ends its data or begins markup", "[html-report]") {
  const std::string page = render_html(example(), "d3");
  REQUIRE(page.find("alert(1)</script>") == std::string::npos);
  REQUIRE(page.find("<b>") == std::string::npos);
}

TEST_CASE("the parts of the page are built in, each with its licence", "[html-report]") {
  const HtmlTemplate& page = html_template();
  for (const std::string_view part : {page.style, page.body, page.script}) {
    REQUIRE(part.substr(0, 60).find("SPDX-License-Identifier: Apache-2.0") !=
            std::string_view::npos);
  }
}

}  // namespace trainyard
