// SPDX-License-Identifier: Apache-2.0
// The part of `trainyard validate` for measured training steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibration/training/step_fit.h"
#include "calibration/training/step_prediction.h"
#include "calibration/training/training_score.h"
#include "parallelism/run/step_run.h"
#include "report/accuracy/training_report.h"

namespace trainyard {

struct TrainingValidationRequest {
  std::vector<std::filesystem::path> files;  // The files of cases.
  std::filesystem::path root;                // The folder above configs.
  std::vector<std::string> only;             // Parts of names of sources or cases; empty: all.
  unsigned threads = 0;                      // 0: all cores.
  StepMethod method = StepMethod::ClosedForms;
};

// Whether this case is about training steps: its table then has rows of models, not of sizes.
// Throws ConfigError for a file that cannot be read.
[[nodiscard]] bool is_training_case(const std::filesystem::path& file,
                                    const std::filesystem::path& root);

using CaseScorer = std::function<SourceScore(const LoadedTrainingCase& loaded)>;
// Cases are scored side by side. Throws ConfigError.
[[nodiscard]] TrainingReport validate_training(const TrainingValidationRequest& request,
                                               const CaseScorer& score);

// Whose constants predictions are made with.
enum class StepFitting : std::uint8_t {
  None,         // Those of the files: what `trainyard step` would say.
  All,          // Fitted to all cases.
  OutOfSource,  // Fitted on the other half of the sources of a generation.
  // Those of the files, without the rates of the generation that is predicted. Intervals are made
  // of these predictions and those out of source.
  LeaveOneOut,
};

// With predictions, and with measured memory unless `only` names sources. `priors`: the file of
// step_values.h; read where something is fitted.
[[nodiscard]] TrainingReport validate_steps(const TrainingValidationRequest& request,
                                            const StepConstants& constants, StepFitting fitting,
                                            const std::filesystem::path& priors);

}  // namespace trainyard
