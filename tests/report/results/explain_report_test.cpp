// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/results/explain_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/formats/csv.h"

namespace trainyard {
namespace {

ResourceEffect effect(const std::string& key, SimTime faster, SimTime slower) {
  return {.key = key, .title = key, .value = "", .faster = faster, .slower = slower};
}

SimTime power(double exponent, double factor) {
  return SimTime(std::llround(1e9 * std::pow(factor, -exponent)));
}

RunExplanation example_report() {
  ExplainedTime time{
      .label = "step",
      .how = "a way",
      .time = milliseconds(1),
      .all = effect("all", power(1.0, 1.1), power(1.0, 1.0 / 1.1)),
      .effects = {effect("flops", power(0.75, 1.1), power(0.75, 1.0 / 1.1)),
                  effect("nic", milliseconds(1), power(0.5, 1.0 / 1.1)),
                  effect("pcie", milliseconds(1), milliseconds(1))},
      .improvements = {{.what = "a switch", .kind = "setting", .time = power(3, 1.1)},
                       {.what = "a hair",
                        .kind = "setting",
                        .time = milliseconds(1) - picoseconds(5)}},
      .links = {{.resource = "nic",
                 .example = "a -> b",
                 .count = 3,
                 .rate_gbps = 50.0,
                 .utilisation = 0.5,
                 .parts = {{.purpose = "data", .bytes = Bytes(25'000'000)}}}}};
  return {.header = {"Explained"},
          .factor = 1.1,
          .times = {time},
          .limits = {"weather"},
          .notes = {"a note"}};
}

}  // namespace

TEST_CASE("an explanation says what helps, what is just enough and what does nothing",
          "[explain-report]") {
  const RunExplanation explanation = example_report();
  const ExplainedTime& time = explanation.times.front();
  REQUIRE(effect_kind(time.effects[0], time.time, 1.1) == EffectKind::Helps);
  REQUIRE(effect_kind(time.effects[1], time.time, 1.1) == EffectKind::Slack);
  REQUIRE(effect_kind(time.effects[2], time.time, 1.1) == EffectKind::None);
  REQUIRE(effect_kind(effect("x", milliseconds(2), milliseconds(1)), time.time, 1.1) ==
          EffectKind::Backward);
  REQUIRE(summary_of(time, 1.1) == "Follows flops (75 %); no effect from pcie");
  const std::string text = render(explanation, Format::Table);
  REQUIRE(text.find("0.750") != std::string::npos);
  REQUIRE(text.find("just enough: slower shows") != std::string::npos);
  REQUIRE(text.find("does nothing") != std::string::npos);
  REQUIRE(text.find("a -> b and 2 more  data 23.84 MiB") != std::string::npos);
  REQUIRE(text.find("a switch") != std::string::npos);
  REQUIRE(text.find("a hair") == std::string::npos);
  REQUIRE(text.find("  weather\n") != std::string::npos);
}

TEST_CASE("an explanation has exact times in JSON and a row for each resource in CSV",
          "[explain-report]") {
  const auto json = nlohmann::json::parse(render(example_report(), Format::Json));
  REQUIRE(json["times"][0]["time_ps"] == 1'000'000'000);
  REQUIRE(json["times"][0]["resources"].size() == 3);
  REQUIRE(json["times"][0]["resources"][0]["elasticity"].get<double>() ==
          Approx(0.75).margin(1e-6));
  REQUIRE(json["times"][0]["sum_of_elasticities"].get<double>() == Approx(0.75).margin(1e-6));
  REQUIRE(json["times"][0]["links"][0]["bytes"]["data"] == 25'000'000);
  const auto rows = parse_csv(render(example_report(), Format::Csv));
  REQUIRE(rows.size() == 5);  // Header, three resources, all at once.
  REQUIRE(rows[4][2] == "all");
}

TEST_CASE("several explained times are one table of resources over them", "[explain-report]") {
  RunExplanation explanation = example_report();
  explanation.times.push_back(explanation.times.front());
  explanation.times.back().label = "another";
  const std::string text = render(explanation, Format::Table);
  REQUIRE(text.find("elasticity                       step  another\n") != std::string::npos);
}

}  // namespace trainyard
