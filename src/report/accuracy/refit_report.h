// SPDX-License-Identifier: Apache-2.0
// The part of the report of `trainyard validate` that is about fitted constants: three errors
// beside each other, with the constants of the profile, with those fitted to all tables, and of
// each system with those fitted to all others.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/fit/refit.h"
#include "calibration/predict/validation.h"
#include "report/formats/json.h"
#include "report/formats/table.h"

namespace trainyard {

// `shipped` is of the same cases with the profile.
[[nodiscard]] std::string refit_text(const Validation& shipped, const Refit& refit);

// Adds to the table of cases what it has more for programs: columns, and the cells of one case.
void add_refit_columns(const Refit& refit, std::vector<Column>& columns);
void add_refit_cells(const Refit& refit, std::size_t index, std::vector<Cell>& cells);

// Adds to the JSON of validation_report.h: `refit` and `leave_one_out` to `summary`, to each of
// `classes` and `cases`, and the lists `systems` and `constants`.
void add_refit(const Validation& shipped, const Refit& refit, Json& root);

}  // namespace trainyard
