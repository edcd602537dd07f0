// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/training/step_intervals.h"

#include <string>
#include <utility>
#include <vector>

#include "support/program.h"

namespace trainyard {
namespace {

// Steps that take these multiples of what was predicted.
SourceScore source(const std::string& name, const std::string& generation,
                   const std::vector<double>& ratios, bool has_experts = false) {
  SourceScore made{.name = name, .generation = generation};
  for (const double ratio : ratios) {
    made.steps.push_back(
        {.id = "row", .has_experts = has_experts, .measured_s = ratio, .predicted_s = 1.0});
  }
  return made;
}

constexpr PredictionKind kDense{.is_measured = true, .has_experts = false};

}  // namespace

TEST_CASE("every source of steps weighs the same in an interval", "[training]") {
  StepIntervals intervals;
  std::vector<double> many(1000, 1.0);
  intervals.add(kDense, {.sources = {source("many", "a100", many), source("one", "h100", {1.5}),
                                     source("two", "h100", {0.8, 0.9}),
                                     source("experts", "h100", {3.0}, true)}});
  const TimeBand& band = intervals.band(kDense);
  REQUIRE(band.high == Approx(1.5));
  REQUIRE(band.low == Approx(0.8));
  REQUIRE(band.systems == 3);
  REQUIRE(band.rows == 1003);
  REQUIRE_FALSE(intervals.has({.is_measured = true, .has_experts = true}));
  StepIntervals without;
  without.add(kDense, {.sources = {source("many", "a100", many), source("one", "h100", {1.5})}},
              "h100");
  REQUIRE(without.band(kDense).high == 1.0);
}

TEST_CASE("a generation is covered by the intervals of the others", "[training]") {
  const TrainingScore left_out{.sources = {source("a", "a100", {0.9, 1.1}),
                                           source("b", "h100", {0.95, 1.3}),
                                           source("c", "b200", {1.0})}};
  const auto coverage = coverage_by_others(left_out);
  REQUIRE(coverage.at("a100").rows == 2);
  REQUIRE(coverage.at("a100").inside == 2);  // From 1 / 1.3 to 1.3.
  REQUIRE(coverage.at("h100").inside == 1);  // From 0.9 to 1 / 0.9.
  REQUIRE(coverage.at("b200").share() == 1.0);
}

TEST_CASE("intervals of steps are written as they are read", "[training]") {
  StepIntervals intervals;
  for (const bool is_measured : {true, false}) {
    for (const bool has_experts : {true, false}) {
      intervals.add({.is_measured = is_measured, .has_experts = has_experts},
                    {.sources = {source("a", "a100", {0.9, 1.1}, has_experts)}});
    }
  }
  const ScratchFolder folder;
  const StepIntervals read =
      StepIntervals::load(folder.write("intervals.yaml", intervals.to_yaml()));
  REQUIRE(read.to_yaml() == intervals.to_yaml());
  REQUIRE(read.band(kDense).rows == 2);
  REQUIRE_THROWS_AS(StepIntervals::load(folder.write("wrong.yaml", "measured: {}")), ConfigError);
}

}  // namespace trainyard
