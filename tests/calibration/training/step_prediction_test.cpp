// SPDX-License-Identifier: Apache-2.0
// Predictions of measured steps: parts that add up, nothing remembered wrongly, and refusals.
#include "calibration/training/step_prediction.h"

#include <filesystem>
#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/catch.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();

LoadedTrainingCase shipped_case(const std::string& name) {
  ModelFolder models(kConfigsFolder / "workloads" / "models");
  return load_training_case(kRoot / "validation" / "cases" / "training" / (name + ".yaml"), kRoot,
                            models);
}

const TrainingRun& first_run(const LoadedTrainingCase& loaded) {
  for (const TrainingCaseRow& row : loaded.rows) {
    if (row.run) {
      return *row.run;
    }
  }
  FAIL("no row with a plan");
  return *loaded.rows.front().run;
}

}  // namespace

TEST_CASE("a measured step is predicted in parts that add up", "[training]") {
  const Catalogue catalogue = Catalogue::load(kConfigsFolder / "hardware");
  const StepConstants constants(kConfigsFolder, catalogue);
  StepPrediction prediction(constants);
  const LoadedTrainingCase loaded = shipped_case("korthikanti");
  const StepValues values{.rates = constants.rates};
  const StepTime step = prediction.predict(loaded.item, first_run(loaded), values);
  REQUIRE(step.time > SimTime());
  REQUIRE(step.parts.total() == step.time);
  // What is remembered of clusters and collectives changes nothing.
  REQUIRE(prediction.predict(loaded.item, first_run(loaded), values).time == step.time);
  REQUIRE(StepPrediction(constants).predict(loaded.item, first_run(loaded), values).time ==
          step.time);
  // With the rates of Hopper and Blackwell, whose shares are lower than Ampere's.
  REQUIRE(prediction
              .predict(loaded.item, first_run(loaded),
                       {.rates = constants.rates, .leaves_out_own = true})
              .time > step.time);
}

TEST_CASE("steps on other accelerators run plain rings and are known as not measured",
          "[training]") {
  const Catalogue catalogue = Catalogue::load(kConfigsFolder / "hardware");
  const StepConstants constants(kConfigsFolder, catalogue);
  const LoadedTrainingCase tpu = shipped_case("tpu-v6e-8");
  REQUIRE_FALSE(constants.are_measured(tpu));
  REQUIRE(constants.are_measured(shipped_case("bert-a100")));
  REQUIRE_FALSE(constants.are_measured(shipped_case("bert-v100")));
  const StepValues values{.rates = constants.rates};
  const TrainingRun& run = first_run(tpu);
  const StepTime step = StepPrediction(constants).predict(tpu.item, run, values);
  // Products alone take six operations for each token and each of seven billion weights.
  const GpuModel& chip = catalogue.gpus().at("TPU-v6e");
  const double operations = 6.0 * 7e9 * 3 * 8192;
  REQUIRE(step.time.seconds() > operations / chip.peak.at("bf16").value.flops_per_second());
  REQUIRE(step.parts.total() == step.time);
  // Rates without its own are the same ones, as it has none.
  REQUIRE(StepPrediction(constants)
              .predict(tpu.item, run, {.rates = constants.rates, .leaves_out_own = true})
              .time == step.time);
}

TEST_CASE("a row whose GPUs have no rates is refused in one line", "[training]") {
  const Catalogue catalogue = Catalogue::load(kConfigsFolder / "hardware");
  const StepConstants constants(kConfigsFolder, catalogue);
  StepPrediction prediction(constants);
  const LoadedTrainingCase loaded = shipped_case("korthikanti");
  TrainingRun run = first_run(loaded);
  run.precision = Precision::Fp8;
  REQUIRE_THROWS_AS(prediction.predict(loaded.item, run, {.rates = constants.rates}),
                    ConfigError);  // A100 has no FP8.
  run = first_run(loaded);
  run.software.profile.reset();
  REQUIRE_THROWS_WITH(prediction.predict(loaded.item, run, {.rates = constants.rates}),
                      "step: expected parallel.software in the case, found none");
}

}  // namespace trainyard
