// SPDX-License-Identifier: Apache-2.0
// Errors are kept as ln(predicted / measured), so that twice and half are equally far; people read
// what that means for a time: 0.1 is 10.5 %.
#pragma once

#include <string>

#include "report/formats/table.h"

namespace trainyard {

// 100 (exp(logarithm) - 1).
[[nodiscard]] double log_percent(double logarithm);
// "10.5 %", and with its sign "+10.5 %".
[[nodiscard]] std::string percent_of_log(double logarithm);
[[nodiscard]] std::string signed_percent_of_log(double logarithm);

// The same as cells, with none for what is not known.
[[nodiscard]] Cell error_cell(bool is_known, double logarithm);
[[nodiscard]] Cell bias_cell(bool is_known, double logarithm);

}  // namespace trainyard
