// SPDX-License-Identifier: Apache-2.0
// The report of `trainyard validate`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/ledger.h"
#include "calibration/fit/refit.h"
#include "calibration/predict/validation.h"
#include "report/formats/document.h"

namespace trainyard {

struct ValidationReport {
  Validation validation;
  std::string runtime;                // Runtime that predicted: "plain".
  std::vector<std::string> exceeded;  // Budgets, one line each.
  std::vector<std::string> notes;
  std::optional<Refit> refit = {};     // Refit of the same cases, in the same order.
  std::vector<LedgerRow> ledger = {};  // With systems left out: coverage of intervals is shown.
};

// Text: cases, classes and all together with errors in per cent, exp(|ln ratio|) - 1, each with
// every set of constants; then systems, constants, and what is not covered or does not count. CSV:
// one line for each case. JSON: `summary`, `classes`, `cases` with every row, where errors are
// |ln ratio|; with a refit `refit` and `leave_one_out` in each of them, `systems` and `constants`.
[[nodiscard]] Document document_of(const ValidationReport& report);

}  // namespace trainyard
