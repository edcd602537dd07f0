// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/sweep/sweep_html.h"

#include <string>

#include "support/built_clusters.h"

namespace trainyard {
namespace {

SweepSpec two_by_two() {
  return {.title = "T",
          .command = "step",
          .options = {{"workload", {"w"}}},
          .groups = {{{.key = "a", .values = {"1", "2"}}}, {{.key = "b", .values = {"x", "y"}}}}};
}

Table results_of_two_by_two() {
  Table table({{.name = "a", .key = "a"},
               {.name = "b", .key = "b"},
               {.name = "cluster", .key = "cluster"},
               {.name = "step_time_s", .key = "step_time_s"},
               {.name = "error", .key = "error"}});
  for (const std::int64_t a : {1, 2}) {
    table.add_row({Cell::of(a),
                   Cell::of(std::string("x")),
                   Cell::of(std::string("C")),
                   {"1.5", 1.5 * static_cast<double>(a)},
                   Cell::none()});
    table.add_row({Cell::of(a), Cell::of(std::string("y")), Cell::none(), Cell::none(),
                   Cell::of(std::string("e"))});
  }
  return table;
}

}  // namespace

TEST_CASE("the page of a sweep has charts, results, inputs and estimates", "[sweep-html]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const HtmlReport html = sweep_html(two_by_two(), results_of_two_by_two(), cluster);
  REQUIRE(html.title == "T");
  REQUIRE(html.sweep.rows.size() == 2);
  REQUIRE(html.summary[2].second == "2");
  REQUIRE(html.tables.size() == 3);
  REQUIRE(html.tables[0].table.rows().size() == 4);
  REQUIRE(html.tables[1].table.rows()[0][1].text == "trainyard step");
  REQUIRE(html.tables[1].table.rows()[3][1].text == "x, y");
  REQUIRE(html.tables[2].note.find("first point") != std::string::npos);
  REQUIRE(sweep_html(two_by_two(), results_of_two_by_two(), {}).tables.size() == 2);
}

}  // namespace trainyard
