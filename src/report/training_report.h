// SPDX-License-Identifier: Apache-2.0
// The report of `trainyard validate` on measured training steps.
#pragma once

#include <string>
#include <vector>

#include "calibration/training_score.h"
#include "report/table.h"

namespace trainyard {

struct TrainingReport {
  TrainingScore score;
  std::vector<std::string> notes;
};

// Text: sources with their coverage and errors in per cent, exp(|ln ratio|) - 1, their means, and
// why rows are not scored. CSV: one line for each source and generation. JSON: `summary`,
// `generations`, `sources` with every row; errors there are |ln ratio|.
[[nodiscard]] std::string render(const TrainingReport& report, Format format);

}  // namespace trainyard
