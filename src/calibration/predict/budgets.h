// SPDX-License-Identifier: Apache-2.0
// Budgets: the errors that validation may not exceed, one set for each class of systems, or source
// of training steps and generation, and one for all. They only go down: recording keeps what was
// there where it is lower.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "calibration/predict/validation.h"
#include "sim/fields.h"

namespace trainyard {

// Budgets by group ("all", "h100-nvswitch", "dgxc h100", "memory simumax-b200") and figure
// ("median_error_large", ...): |ln(predicted / measured)| at most, and how many cases or rows are
// predicted at least. A figure is absent where a group has no such rows.
using Budgets = std::map<std::string, std::map<std::string, double>>;

void budget_fields(Fields& fields, Budgets& budgets);
[[nodiscard]] Budgets load_budgets(const std::filesystem::path& file);
[[nodiscard]] std::string to_yaml(const Budgets& budgets);

// Returns the errors that were seen.
[[nodiscard]] Budgets seen_budgets(const Validation& validation);
// One line for each budget that is exceeded, and for each that nothing was seen of.
[[nodiscard]] std::vector<std::string> exceeded_budgets(const Budgets& seen,
                                                        const Budgets& budgets);
// Returns the errors that were seen, rounded up to three decimals, wherever they are better than
// before or new.
[[nodiscard]] Budgets lowered(const Budgets& seen, const Budgets& before);

}  // namespace trainyard
