// SPDX-License-Identifier: Apache-2.0
// The part of `trainyard validate` for measured training steps.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibration/step_prediction.h"
#include "calibration/training_score.h"
#include "report/training_report.h"

namespace trainyard {

struct TrainingValidationRequest {
  std::vector<std::filesystem::path> files;  // Of cases.
  std::filesystem::path root;                // The folder above configs.
  std::vector<std::string> only;             // Parts of names of sources or cases; empty: all.
  unsigned threads = 0;                      // 0: all cores.
};

// Whether this case is about training steps: its table then has rows of models, not of sizes.
// Throws ConfigError for a file that cannot be read.
[[nodiscard]] bool is_training_case(const std::filesystem::path& file,
                                    const std::filesystem::path& root);

using CaseScorer = std::function<SourceScore(const LoadedTrainingCase& loaded)>;
// Cases are scored side by side. Throws ConfigError.
[[nodiscard]] TrainingReport validate_training(const TrainingValidationRequest& request,
                                               const CaseScorer& score);

// With what `trainyard step` would say.
[[nodiscard]] SourceScore score_with_steps(const LoadedTrainingCase& loaded,
                                           const StepConstants& constants);

}  // namespace trainyard
