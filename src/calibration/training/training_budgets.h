// SPDX-License-Identifier: Apache-2.0
// Budgets of measured training steps: errors that validation may not exceed, one set for each
// source and generation and one for all. They only go down, as those of collectives (budgets.h).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "calibration/training/training_score.h"

namespace trainyard {

// Budgets by group ("all", "dgxc h100", "memory simumax-b200") and figure ("median_error_dense",
// ...): |ln(predicted / measured)|; and the number of rows that are predicted, at least.
struct TrainingBudgets {
  std::map<std::string, std::map<std::string, double>> groups;
};

[[nodiscard]] TrainingBudgets load_training_budgets(const std::filesystem::path& file);
[[nodiscard]] std::string to_yaml(const TrainingBudgets& budgets);

// Returns the errors that were seen.
[[nodiscard]] TrainingBudgets seen_budgets(const TrainingScore& score);
// One line for each budget that is exceeded, and for each that nothing was seen of.
[[nodiscard]] std::vector<std::string> exceeded_budgets(const TrainingBudgets& seen,
                                                        const TrainingBudgets& budgets);
// Returns the errors that were seen, rounded up to three decimals, wherever they are better than
// before or new.
[[nodiscard]] TrainingBudgets lowered(const TrainingBudgets& seen, const TrainingBudgets& before);

}  // namespace trainyard
