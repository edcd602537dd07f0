// SPDX-License-Identifier: Apache-2.0
// The report of `trainyard validate` on measured training steps.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/training/step_fit.h"
#include "calibration/training/step_intervals.h"
#include "calibration/training/training_score.h"
#include "report/formats/document.h"

namespace trainyard {

struct TrainingReport {
  TrainingScore score;
  std::vector<std::string> notes = {};
  // Set where constants were fitted: the score with those of the files, and the fits.
  std::optional<TrainingScore> with_files = {};
  std::vector<GenerationFit> fits = {};
  std::vector<std::string> exceeded = {};  // Budgets; one line each.
  // Set where each generation was left out: what follows of intervals.
  std::optional<StepIntervals> intervals = {};
  // Rows in their intervals by class, each table with what it is of.
  std::vector<std::pair<std::string, std::map<std::string, Coverage>>> coverage = {};
};

// Text: sources with their coverage and errors in per cent, exp(|ln ratio|) - 1, their means, and
// why rows are not scored. CSV: one line for each source and generation. JSON: `summary`,
// `generations`, `sources` with every row; errors there are |ln ratio|. Where constants were
// fitted, all that is of the score with them, beside `with_files` and `fits`.
[[nodiscard]] Document document_of(const TrainingReport& report);

}  // namespace trainyard
