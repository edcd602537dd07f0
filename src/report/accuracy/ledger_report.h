// SPDX-License-Identifier: Apache-2.0
// The accuracy ledger: validation/ledger.csv, and its summary in docs/accuracy/accuracy.md.
#pragma once

#include <span>
#include <string>

#include "calibration/fit/ledger.h"

namespace trainyard {

// CSV, one line for each row, with the interval that all other systems give.
[[nodiscard]] std::string ledger_csv(std::span<const LedgerRow> ledger);

// A Markdown table: of each class, and of all, how far measured times were from those that
// were foreseen in each regime, and how many lie in their intervals.
[[nodiscard]] std::string ledger_summary(std::span<const LedgerRow> ledger);

}  // namespace trainyard
