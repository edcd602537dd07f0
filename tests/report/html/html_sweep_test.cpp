// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/html/html_sweep.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

Cell real(double value) {
  return {std::to_string(value), value};
}

// Two servers and two rates; a point failed.
Table step_sweep() {
  Table table({{.name = "rate", .key = "rate"},
               {.name = "nodes", .key = "nodes"},
               {.name = "gpus", .key = "gpus"},
               {.name = "step_time_s", .key = "step_time_s"},
               {.name = "mfu", .key = "mfu"},
               {.name = "error", .key = "error"}});
  const auto add = [&](const char* rate, std::int64_t nodes, double time, double mfu) {
    table.add_row({Cell::of(std::string(rate)), Cell::of(nodes), Cell::of(std::int64_t{8}),
                   real(time), real(mfu), Cell::none()});
  };
  add("400Gb/s", 4, 1.0, 0.5);
  add("400Gb/s", 2, 2.0, 0.5);
  add("400Gb/s", 1, 4.0, 0.4);
  add("200Gb/s", 4, 1.5, 0.3);
  table.add_row({Cell::of(std::string("200Gb/s")), Cell::of(std::int64_t{2}), Cell::none(),
                 Cell::none(), Cell::none(), Cell::of(std::string("no"))});
  return table;
}

}  // namespace

TEST_CASE("what varies are keys, what changes are figures", "[html-sweep]") {
  const HtmlSweep sweep = html_sweep(step_sweep(), 2);
  REQUIRE(sweep.keys.size() == 2);
  REQUIRE(sweep.keys[0].values == std::vector<std::string>{"400Gb/s", "200Gb/s"});
  REQUIRE(sweep.keys[0].numbers.empty());
  REQUIRE(sweep.keys[1].values == std::vector<std::string>{"1", "2", "4"});
  REQUIRE(sweep.keys[1].numbers == std::vector<double>{1.0, 2.0, 4.0});
  // The GPUs are the same in all rows.
  REQUIRE(sweep.figures.size() == 2);
  REQUIRE(sweep.figures[0].name == "step_time_s");
  REQUIRE_FALSE(sweep.figures[0].is_more_better);
  REQUIRE(sweep.figures[1].is_more_better);
  REQUIRE(sweep.rows.size() == 4);
  REQUIRE(sweep.rows[0]["keys"] == nlohmann::ordered_json({0, 2}));
  REQUIRE(sweep.rows[3]["figures"][0] == 1.5);
  REQUIRE(sweep.x == 1);
  REQUIRE(sweep.y == 0);
  REQUIRE(sweep.first == 0);
  REQUIRE(sweep.second == 1);
}

TEST_CASE("rows of one point are told apart by sizes and names, as far as it takes",
          "[html-sweep]") {
  Table table({{.name = "nodes", .key = "nodes"},
               {.name = "size_bytes", .key = "size_bytes"},
               {.name = "type", .key = "type"},
               {.name = "time_us", .key = "time_us"},
               {.name = "algorithm", .key = "algorithm"},
               {.name = "protocol", .key = "protocol"},
               {.name = "error", .key = "error"}});
  for (const std::int64_t size : {1024, 8}) {
    for (const char* const algorithm : {"ring", "tree"}) {
      table.add_row({Cell::of(std::int64_t{1}), Cell::of(size), Cell::of(std::string("float")),
                     real(static_cast<double>(size)), Cell::of(std::string(algorithm)),
                     Cell::of(std::string(algorithm) + " LL"), Cell::none()});
    }
  }
  const HtmlSweep sweep = html_sweep(table, 1);
  REQUIRE(sweep.keys.size() == 3);
  REQUIRE(sweep.keys[1].name == "size_bytes");
  REQUIRE(sweep.keys[1].numbers == std::vector<double>{8.0, 1024.0});
  REQUIRE(sweep.keys[2].name == "algorithm");
  REQUIRE(sweep.figures.size() == 1);
  REQUIRE(sweep.x == 1);
}

TEST_CASE("a sweep without results has no charts", "[html-sweep]") {
  Table table({{.name = "nodes", .key = "nodes"}, {.name = "error", .key = "error"}});
  table.add_row({Cell::of(std::int64_t{1}), Cell::of(std::string("no"))});
  REQUIRE(html_sweep(table, 1).rows.empty());
}

TEST_CASE("rates, shares and room are better if more", "[html-sweep]") {
  for (const char* const more : {"tokens_per_s", "busbw_gb_per_s", "mfu", "headroom_gib",
                                 "goodput_least_gbit_per_s", "jain_fairness"}) {
    REQUIRE(is_more_better(more));
  }
  for (const char* const less : {"step_time_s", "memory_peak_gib", "price_of_million_tokens",
                                 "unfinished", "energy_of_token_j"}) {
    REQUIRE_FALSE(is_more_better(less));
  }
}

}  // namespace trainyard
