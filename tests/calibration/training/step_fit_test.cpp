// SPDX-License-Identifier: Apache-2.0
// A fit to steps that were predicted with other constants finds these, as far as rows show them.
#include "calibration/training/step_fit.h"

#include <filesystem>
#include <string>
#include <vector>

#include "support/built_clusters.h"
#include "support/catch.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kProject = source_dir();

const FittedStepConstant& constant_of(const GenerationFit& fit, const std::string& name) {
  for (const FittedStepConstant& one : fit.constants) {
    if (one.constant.name == name) {
      return one;
    }
  }
  FAIL("no constant " + name);
  return fit.constants.front();
}

}  // namespace

TEST_CASE("a fit finds the constants that rows show, and leaves the others", "[step-fit]") {
  ModelFolder models(kConfigsFolder / "workloads" / "models");
  LoadedTrainingCase loaded = load_training_case(
      kProject / "validation" / "cases" / "training" / "zero-bubble.yaml", kProject, models);
  loaded.rows.resize(24);
  const Catalogue catalogue = Catalogue::load(kConfigsFolder / "hardware");
  const StepConstants constants(kConfigsFolder, catalogue);
  const StepPriors priors =
      StepPriors::load(kConfigsFolder / "hardware" / "gpu-rates-priors.yaml", constants.rates);
  CasePredictions predictions(constants);
  StepValues truth{.rates = constants.rates};
  GenerationRates& ampere = truth.rates.generations.at("ampere");
  ampere.gemm = 0.7;  // Nine tenths of what the priors assume.
  for (TrainingCaseRow& row : loaded.rows) {
    if (row.run) {
      row.run->measured_s = predictions.predict(loaded.item, *row.run, truth).time.seconds();
    }
  }
  const std::vector<const LoadedTrainingCase*> cases{&loaded};
  const TaskRunner runner = [](std::size_t count, const std::function<void(std::size_t)>& task) {
    for (std::size_t index = 0; index < count; ++index) {
      task(index);
    }
  };
  const GenerationFit fit = fit_steps(cases, priors, predictions, runner);
  REQUIRE(fit.generation == "a100");
  REQUIRE(fit.sources == std::vector<std::string>{"zero_bubble"});
  REQUIRE(fit.cost < 0.5 * fit.cost_before);
  const FittedStepConstant& gemm = constant_of(fit, "ampere.gemm");
  REQUIRE(gemm.value < 0.75);
  REQUIRE(gemm.rows > 20);
  const StepValues values = values_of(fit, priors);
  REQUIRE(values.rates.generations.at("ampere").gemm == Approx(gemm.value));
  // Nothing of this is on a Hopper: what was assumed.
  REQUIRE(values.rates.generations.at("hopper").gemm == Approx(0.7));
  for (const TrainingCaseRow& row : loaded.rows) {
    if (row.run) {
      REQUIRE(predictions.predict(loaded.item, *row.run, values).time.seconds() ==
              Approx(row.run->measured_s).epsilon(0.05));
    }
  }
}

}  // namespace trainyard
