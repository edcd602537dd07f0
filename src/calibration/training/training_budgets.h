// SPDX-License-Identifier: Apache-2.0
// Budgets (budgets.h) of predicted training steps: one group for each source and generation, one
// for each source of memory, and one for all.
#pragma once

#include "calibration/predict/budgets.h"
#include "calibration/training/training_score.h"

namespace trainyard {

[[nodiscard]] Budgets seen_budgets(const TrainingScore& score);

}  // namespace trainyard
