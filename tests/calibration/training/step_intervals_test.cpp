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
                   const std::vector<double>& ratios, bool has_experts = false,
                   bool waits_for_host = false) {
  SourceScore made{.name = name, .generation = generation};
  for (const double ratio : ratios) {
    made.steps.push_back({.id = "row",
                          .has_experts = has_experts,
                          .waits_for_host = waits_for_host,
                          .measured_s = ratio,
                          .predicted_s = 1.0});
  }
  return made;
}

constexpr PredictionKind kDense{};
constexpr PredictionKind kWaits{.waits_for_host = true};
constexpr PredictionKind kOther{.is_measured = false};

}  // namespace

TEST_CASE("every source of steps weighs the same in an interval", "[training]") {
  const std::vector<double> many(1000, 1.0);
  const std::vector<SourceScore> sources{source("many", "a100", many), source("one", "h100", {1.5}),
                                         source("two", "h100", {0.8, 0.9}),
                                         source("experts", "h100", {3.0}, true)};
  const StepIntervals intervals = StepIntervals::of(sources, {});
  const TimeBand& band = intervals.band(kDense);
  REQUIRE(band.high == Approx(1.5));
  REQUIRE(band.low == Approx(0.8));
  REQUIRE(band.systems == 3);
  REQUIRE(band.rows == 1003);
  REQUIRE_FALSE(intervals.has(kWaits));
  REQUIRE_FALSE(intervals.has(kOther));
}

TEST_CASE("steps that wait for launches have a band that the other steps only add to",
          "[training]") {
  // Ten sources that wait for nothing and one that does, which counts a third of its band.
  std::vector<SourceScore> sources{source("waits", "a100", {1.3}, false, true)};
  for (int index = 0; index < 10; ++index) {
    sources.push_back(source("gpu" + std::to_string(index), "a100", {0.98}));
  }
  const StepIntervals intervals = StepIntervals::of(sources, {});
  REQUIRE(intervals.band(kWaits).low == Approx(0.98));
  REQUIRE(intervals.band(kWaits).high == Approx(1.3));
  REQUIRE(intervals.band(kWaits).systems == 1);
  REQUIRE(intervals.band(kDense).high == Approx(1.3));  // A sixth of twelve is above 5 %.
}

TEST_CASE("a step waits for launches from a hundredth of its time on", "[training]") {
  StepTime step;
  step.time = SimTime(1000);
  step.parts[StepPart::Host] = SimTime(9);
  REQUIRE_FALSE(waits_for_host(step));
  step.parts[StepPart::Host] = SimTime(10);
  REQUIRE(waits_for_host(step));
}

TEST_CASE("where no GPU was measured, the generation furthest off says how far", "[training]") {
  // Nine in ten rows of H100 are within 1.2, of TPUs, whose sources weigh the same, within 1.4.
  std::vector<double> many(1000, 1.1);
  std::vector<double> hopper(90, 1.2);
  hopper.insert(hopper.end(), 10, 3.0);
  const std::vector<SourceScore> sources{source("t", "tpu", {1.4}), source("u", "tpu", many),
                                         source("h", "h100", hopper, true, true)};
  const StepIntervals intervals = StepIntervals::of({}, sources);
  REQUIRE(intervals.band(kOther).high == Approx(1.4));
  REQUIRE(intervals.band(kOther).low == Approx(1.0 / 1.4));  // The next may be off the other way.
  REQUIRE(intervals.band(kOther).systems == 3);
  REQUIRE(intervals.band(kOther).rows == 1101);
  REQUIRE(kind_of(false, true, true) == kOther);
}

TEST_CASE("a generation is covered by the intervals of the others", "[training]") {
  const std::vector<SourceScore> left_out{source("a", "a100", {0.9, 1.1}),
                                          source("b", "h100", {0.95, 1.3}),
                                          source("c", "b200", {1.0})};
  const auto coverage = coverage_by_other_generations(left_out);
  REQUIRE(coverage.at("GPUs: a100").rows == 2);
  REQUIRE(coverage.at("GPUs: a100").inside == 2);  // From 1 / 1.3 to 1.3.
  REQUIRE(coverage.at("GPUs: h100").inside == 1);  // From 0.9 to 1 / 0.9.
  REQUIRE(coverage.at("GPUs: b200").share() == 1.0);
  REQUIRE(coverage.at("all").rows == 5);
}

TEST_CASE("a source is covered by the intervals of the others", "[training]") {
  SourceScore adapters = source("b", "h100", {0.95, 1.3});
  adapters.steps.back().has_adapters = true;
  const std::vector<SourceScore> halves{source("a", "a100", {0.9, 1.1}), adapters,
                                        source("a", "h100", {1.3})};
  const auto coverage = coverage_by_other_sources(halves);
  REQUIRE(coverage.at("source: a a100").inside == 1);  // From 0.95 to 1.3: not with its own 0.9.
  REQUIRE(coverage.at("source: a h100").inside == 1);
  REQUIRE(coverage.at("source: b h100").inside == 2);  // From 0.9 to 1.3.
  REQUIRE(coverage.at("kind: LoRA").rows == 1);
  REQUIRE(coverage.at("kind: dense").rows == 5);
}

TEST_CASE("intervals of steps are written as they are read", "[training]") {
  std::vector<SourceScore> sources;
  for (const bool has_experts : {true, false}) {
    for (const bool waits : {true, false}) {
      sources.push_back(source("a", "a100", {0.9, 1.1}, has_experts, waits));
    }
  }
  const StepIntervals intervals = StepIntervals::of(sources, sources);
  const ScratchFolder folder;
  const StepIntervals read =
      StepIntervals::load(folder.write("intervals.yaml", intervals.to_yaml()));
  REQUIRE(read.to_yaml() == intervals.to_yaml());
  REQUIRE(read.band(kWaits).rows == 2);
  REQUIRE_THROWS_AS(StepIntervals::load(folder.write("wrong.yaml", "measured: {}")), ConfigError);
}

}  // namespace trainyard
