// SPDX-License-Identifier: Apache-2.0
// Budgets: the errors that validation may not exceed, one set for each class of systems and one for
// all. They only go down: recording keeps what was there where it is lower.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/predict/validation.h"

namespace trainyard {

// Errors are |ln(predicted / measured)|, over tables; absent where a group has no such rows.
struct Budget {
  int covered = 0;  // Cases at least.
  std::optional<double> median_large = {};
  std::optional<double> p90_large = {};
  std::optional<double> median_small = {};
};

struct Budgets {
  std::map<std::string, Budget> groups;  // Budgets by class, and "all".
};

[[nodiscard]] Budgets load_budgets(const std::filesystem::path& file);
[[nodiscard]] std::string to_yaml(const Budgets& budgets);

// One line for each budget that is exceeded, and for each class of the budgets that is gone.
[[nodiscard]] std::vector<std::string> exceeded_budgets(const Validation& validation,
                                                        const Budgets& budgets);

// Returns the errors that were seen, rounded up to three decimals, wherever they are lower than
// before or new.
[[nodiscard]] Budgets lowered(const Validation& validation, const Budgets& before);

}  // namespace trainyard
