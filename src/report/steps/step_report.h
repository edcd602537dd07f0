// SPDX-License-Identifier: Apache-2.0
// The prediction of a training step as a document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/time_band.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/run/step_run.h"
#include "parallelism/run/tier_volumes.h"
#include "report/formats/document.h"
#include "report/steps/cost_report.h"
#include "report/steps/step_entries.h"

namespace trainyard {

struct StepReport {
  StepSetup setup;
  const StepRun* run = nullptr;               // Must outlive this.
  double flops_of_token = 0.0;                // FLOPs that the model needs for one token.
  double recomputed_of_token = 0.0;           // Those of them that are done again.
  std::optional<TimeInterval> interval = {};  // Of 90 %, around the time of the step.
  std::vector<std::string> notes = {};
  RunInputs inputs = {};
  std::vector<std::string> estimates = {};  // See Document::estimates.
  std::optional<PricedStep> priced = {};
  StepMethod method = StepMethod::ClosedForms;
  std::optional<ExpertLoads> routing = {};  // Only for a model with experts.
  bool has_images = false;                  // The model's samples are images.
  std::vector<TierVolume> volumes = {};     // Bytes on links, by tier; empty: not counted.

  [[nodiscard]] bool fits() const;  // On GPUs and hosts.
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] double flops_per_gpu() const;  // FLOP/s.
  [[nodiscard]] double mfu() const { return flops_per_gpu() / run->peak; }
  // With what is computed again.
  [[nodiscard]] double hfu() const { return mfu() * (1.0 + recomputed_of_token / flops_of_token); }
};

// The parts add up to the step. MFU is shown by its convention; the page has figures of its own
// shape, short enough for cards.
[[nodiscard]] Document document_of(const StepReport& report);

// The memory that each rank of a pipeline holds in the course of a step, as CSV
// (docs/models/memory.md): for each rank a line for each pass and one for the optimizer, with the
// classes of memory at the highest moment of it.
[[nodiscard]] std::string memory_profile_csv(const StepMemory& memory);

}  // namespace trainyard
