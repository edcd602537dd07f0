// SPDX-License-Identifier: Apache-2.0
// The accuracy ledger: validation/ledger.csv, and its summary in docs/accuracy/accuracy.md.
#pragma once

#include <span>
#include <string>

#include "calibration/fit/ledger.h"
#include "report/formats/table.h"

namespace trainyard {

// CSV, one line for each row, with the interval that all other systems give.
[[nodiscard]] std::string ledger_csv(std::span<const LedgerRow> ledger);

// Has a row for each class, and one for all: how far measured times were from those that were
// foreseen in each regime, and how many lie in their intervals.
[[nodiscard]] Table coverage_table(std::span<const LedgerRow> ledger);

}  // namespace trainyard
