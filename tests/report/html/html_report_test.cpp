// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/html/html_report.h"

#include <nlohmann/json.hpp>
#include <string>

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
