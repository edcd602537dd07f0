// SPDX-License-Identifier: Apache-2.0
// Scores of predicted steps, with predictions of which every figure is known.
#include "calibration/training/training_score.h"

#include <cmath>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/catch.h"

namespace trainyard {
namespace {

ScoredStep scored(double log_error) {
  return {.id = "s", .measured_s = 2.0, .predicted_s = 2.0 * std::exp(log_error)};
}

TrainingCaseRow row_with(const std::string& id, double time_s, bool has_experts) {
  TrainingRun run;
  run.id = id;
  run.measured_s = time_s;
  ModelLayer layer;
  if (has_experts) {
    layer.experts = Experts{};
  } else {
    layer.feed_forward = FeedForward{};
  }
  run.model.layers = {layer};
  TrainingCaseRow row;
  row.id = id;
  row.run = run;
  return row;
}

LoadedTrainingCase case_of(const std::string& source, TrainingHalf half,
                           const std::vector<TrainingCaseRow>& rows) {
  LoadedTrainingCase loaded;
  loaded.item.name = source;
  loaded.item.source = source;
  loaded.item.generation = "a100";
  loaded.item.half = half;
  loaded.rows = rows;
  return loaded;
}

// Slower by this, whatever the row is.
StepPredictor times(double factor) {
  return [factor](const TrainingCase& /*item*/, const TrainingRun& run) {
    return PredictedStep{.seconds = factor * run.measured_s};
  };
}

}  // namespace

TEST_CASE("errors of steps are medians by nearest rank", "[training]") {
  const std::vector<ScoredStep> rows{scored(-0.1), scored(0.2), scored(0.3), scored(-0.4),
                                     scored(0.5)};
  const StepErrors errors = step_errors(rows);
  REQUIRE(errors.rows == 5);
  REQUIRE(errors.median == Approx(0.3));
  REQUIRE(errors.p90 == Approx(0.5));
  REQUIRE(errors.bias == Approx(0.2));
  // Away from 0.2: 0.3, 0, 0.1, 0.6, 0.3.
  REQUIRE(errors.scatter == Approx(0.3));
  REQUIRE(step_errors({}).rows == 0);
}

TEST_CASE("a perfect prediction has no error and a constant factor no scatter", "[training]") {
  const LoadedTrainingCase loaded =
      case_of("s", TrainingHalf::None, {row_with("a", 1.0, false), row_with("b", 7.0, true)});
  const TrainingScore perfect = score_of({score_case(loaded, times(1.0))});
  REQUIRE(perfect.dense.median == 0.0);
  REQUIRE(perfect.experts.bias == 0.0);
  const TrainingScore slow = score_of({score_case(loaded, times(1.1))});
  REQUIRE(slow.dense.median == Approx(std::log(1.1)));
  REQUIRE(slow.dense.bias == Approx(std::log(1.1)));
  REQUIRE(slow.dense.scatter == Approx(0.0).margin(1e-12));
  REQUIRE(slow.experts.rows == 1);
  REQUIRE(slow.dense.rows == 1);
}

TEST_CASE("each source weighs the same in a summary", "[training]") {
  std::vector<TrainingCaseRow> many;
  for (int index = 0; index < 100; ++index) {
    many.push_back(row_with("m" + std::to_string(index), 1.0, false));
  }
  const LoadedTrainingCase large = case_of("large", TrainingHalf::None, many);
  const LoadedTrainingCase small =
      case_of("small", TrainingHalf::None, {row_with("a", 1.0, false)});
  const TrainingScore score =
      score_of({score_case(large, times(1.0)), score_case(small, times(std::exp(0.2)))});
  REQUIRE(score.dense.sources == 2);
  REQUIRE(score.dense.rows == 101);
  REQUIRE(score.dense.median == Approx(0.1));
  REQUIRE(score.dense_by_generation.at("a100").median == Approx(0.1));
  REQUIRE(score.rows() == 101);
  REQUIRE(score.experts.sources == 0);
}

TEST_CASE("a source whose GPUs have no measured kernels is not in the means", "[training]") {
  const LoadedTrainingCase known = case_of("k", TrainingHalf::None, {row_with("a", 1.0, false)});
  LoadedTrainingCase other = case_of("o", TrainingHalf::None, {row_with("b", 1.0, false)});
  other.item.generation = "tpu";
  SourceScore unmeasured = score_case(other, times(2.0));
  unmeasured.is_measured = false;
  const TrainingScore score = score_of({score_case(known, times(1.1)), unmeasured});
  REQUIRE(score.dense.sources == 1);
  REQUIRE(score.dense.bias == Approx(std::log(1.1)));
  REQUIRE(score.dense_by_generation.at("tpu").bias == Approx(std::log(2.0)));
  REQUIRE(score.predicted() == 2);
}

TEST_CASE("cases of one source are one source", "[training]") {
  const LoadedTrainingCase one = case_of("s", TrainingHalf::None, {row_with("a", 1.0, false)});
  const LoadedTrainingCase two = case_of("s", TrainingHalf::None, {row_with("b", 1.0, false)});
  const TrainingScore score = score_of({score_case(one, times(1.0)), score_case(two, times(2.0))});
  REQUIRE(score.sources.size() == 1);
  REQUIRE(score.sources[0].steps.size() == 2);
  REQUIRE(score.sources[0].dense.p90 == Approx(std::log(2.0)));
}

TEST_CASE("rows that cannot be predicted are listed with the reason", "[training]") {
  TrainingCaseRow missing;
  missing.id = "m";
  missing.status = TrainingRowStatus::Missing;
  missing.missing = {"parallel.tp", "parallel.pp"};
  const LoadedTrainingCase loaded =
      case_of("s", TrainingHalf::None, {row_with("a", 1.0, false), missing});
  const TrainingScore score =
      score_of({score_case(loaded, [](const TrainingCase&, const TrainingRun&) -> PredictedStep {
        throw ConfigError("out of memory");
      })});
  REQUIRE(score.with_plan() == 1);
  REQUIRE(score.predicted() == 0);
  REQUIRE(score.sources[0].unscored[0].id == "a");
  REQUIRE(score.sources[0].unscored[0].reason == "out of memory");
  REQUIRE(score.sources[0].unscored[1].reason == "parallel.tp, parallel.pp");
  REQUIRE(score.missing.at("parallel.tp") == 1);
  REQUIRE(score.status.at(TrainingRowStatus::Missing) == 1);
}

TEST_CASE("each half is predicted with constants of the other", "[training]") {
  // Steps of half A take 2 s, of half B 3 s; a fit is the time of its own half for every row.
  const std::vector<LoadedTrainingCase> cases{
      case_of("a", TrainingHalf::A, {row_with("a", 2.0, false)}),
      case_of("b", TrainingHalf::B, {row_with("b", 3.0, false)}),
      case_of("c", TrainingHalf::None, {row_with("c", 5.0, false)})};
  const StepFit fit = [](std::span<const LoadedTrainingCase* const> fitted) -> StepPredictor {
    const double time = fitted[0]->rows[0].run->measured_s;
    return [time](const TrainingCase& /*item*/, const TrainingRun& /*run*/) {
      return PredictedStep{.seconds = time};
    };
  };
  const TrainingScore score = out_of_source_score(cases, fit);
  REQUIRE(score.sources.size() == 2);
  REQUIRE(score.sources[0].steps[0].predicted_s == 3.0);
  REQUIRE(score.sources[1].steps[0].predicted_s == 2.0);
  REQUIRE(score.dense.median == Approx(std::log(1.5)));
  REQUIRE(score.dense.bias == Approx(0.0).margin(1e-12));
}

}  // namespace trainyard
