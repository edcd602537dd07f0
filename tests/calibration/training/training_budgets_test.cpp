// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/training/training_budgets.h"

#include <cmath>
#include <string>
#include <vector>

#include "support/program.h"

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
  const TrainingBudgets first = lowered(seen_budgets(score_with(0.1, 0.02)), {});
  REQUIRE(first.groups.at("all").at("median_error_dense") == Approx(0.1));
  REQUIRE(first.groups.at("lab a100").at("p90_error_dense") == Approx(0.1));
  REQUIRE(first.groups.at("memory cards").at("median_error_memory") == Approx(0.02));
  REQUIRE(first.groups.at("all").at("predicted") == 1.0);
  const TrainingBudgets worse = lowered(seen_budgets(score_with(0.2, 0.02)), first);
  REQUIRE(worse.groups == first.groups);
  const TrainingBudgets better = lowered(seen_budgets(score_with(0.05, 0.03)), first);
  REQUIRE(better.groups.at("all").at("median_error_dense") == Approx(0.05));
  REQUIRE(better.groups.at("all").at("median_error_memory") == Approx(0.02));
}

TEST_CASE("exceeded budgets of training are a line each", "[training]") {
  const TrainingBudgets budgets = lowered(seen_budgets(score_with(0.1, 0.02)), {});
  REQUIRE(exceeded_budgets(seen_budgets(score_with(0.1, 0.02)), budgets).empty());
  const std::vector<std::string> lines =
      exceeded_budgets(seen_budgets(score_with(0.1, 0.04)), budgets);
  REQUIRE(lines == std::vector<std::string>{
                       "all: median_error_memory: expected at most 0.020, found 0.0400",
                       "memory cards: median_error_memory: expected at most 0.020, found 0.0400"});
  const std::vector<std::string> none = exceeded_budgets(seen_budgets(TrainingScore{}), budgets);
  REQUIRE(none.front() == "all: median_error_dense: expected 0.100, found nothing");
  REQUIRE(none.back() == "memory cards: p90_error_memory: expected 0.000, found nothing");
}

TEST_CASE("budgets of training are read as they were written", "[training]") {
  const TrainingBudgets budgets = lowered(seen_budgets(score_with(0.1, 0.02)), {});
  const ScratchFolder folder;
  const auto file = folder.write("budgets.yaml", to_yaml(budgets));
  REQUIRE(load_training_budgets(file).groups == budgets.groups);
}

}  // namespace trainyard
