// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/training/training_budgets.h"

#include <cmath>
#include <string>
#include <vector>

namespace trainyard {
namespace {

TrainingScore score_with(double dense, double memory) {
  SourceScore source{.name = "lab", .generation = "a100"};
  source.steps = {{.id = "a", .measured_s = 1.0, .predicted_s = std::exp(dense)}};
  TrainingScore score = score_of({source});
  score.memory_sources.push_back({.name = "cards", .errors = {.rows = 1, .median = memory}});
  score.memory = {.sources = 1, .rows = 1, .median = memory};
  return score;
}

}  // namespace

TEST_CASE("budgets of training only go down", "[training]") {
  const Budgets first = lowered(seen_budgets(score_with(0.1, 0.02)), {});
  REQUIRE(first.at("all").at("median_error_dense") == Approx(0.1));
  REQUIRE(first.at("lab a100").at("p90_error_dense") == Approx(0.1));
  REQUIRE(first.at("memory cards").at("median_error_memory") == Approx(0.02));
  REQUIRE(first.at("all").at("predicted") == 1.0);
  const Budgets worse = lowered(seen_budgets(score_with(0.2, 0.02)), first);
  REQUIRE(worse == first);
  const Budgets better = lowered(seen_budgets(score_with(0.05, 0.03)), first);
  REQUIRE(better.at("all").at("median_error_dense") == Approx(0.05));
  REQUIRE(better.at("all").at("median_error_memory") == Approx(0.02));
}

TEST_CASE("exceeded budgets of training are a line each", "[training]") {
  const Budgets budgets = lowered(seen_budgets(score_with(0.1, 0.02)), {});
  REQUIRE(exceeded_budgets(seen_budgets(score_with(0.1, 0.02)), budgets).empty());
  const std::vector<std::string> lines =
      exceeded_budgets(seen_budgets(score_with(0.1, 0.04)), budgets);
  REQUIRE(lines == std::vector<std::string>{
                       "all: median_error_memory: expected at most 0.020, found 0.0400",
                       "memory cards: median_error_memory: expected at most 0.020, found 0.0400"});
  const std::vector<std::string> none = exceeded_budgets(seen_budgets(TrainingScore{}), budgets);
  REQUIRE(none.front() == "all: median_error_dense: expected at most 0.100, found nothing");
  REQUIRE(none.back() == "memory cards: p90_error_memory: expected at most 0.000, found nothing");
}

}  // namespace trainyard
