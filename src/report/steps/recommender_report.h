// SPDX-License-Identifier: Apache-2.0
// The prediction of a recommendation model's step as a document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/time_band.h"
#include "parallelism/run/recommender_run.h"
#include "parallelism/run/tier_volumes.h"
#include "report/formats/document.h"
#include "report/steps/step_entries.h"

namespace trainyard {

struct RecommenderReport {
  StepSetup setup;
  const RecommenderWorkload* workload = nullptr;  // Must outlive this, as must `run`.
  const RecommenderRun* run = nullptr;
  std::optional<TimeInterval> interval = {};  // The 90 % interval around the time of the step.
  std::vector<TierVolume> volumes = {};       // Bytes on links, by tier; empty: not counted.
  std::vector<std::string> notes = {};
  RunInputs inputs = {};
  std::vector<std::string> estimates = {};  // See Document::estimates.

  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] double flops_per_gpu() const;  // FLOP/s.
  [[nodiscard]] double mfu() const { return flops_per_gpu() / run->peak; }
};

// The parts are those of the critical rank and add up to the step.
[[nodiscard]] Document document_of(const RecommenderReport& report);

}  // namespace trainyard
