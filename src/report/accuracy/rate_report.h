// SPDX-License-Identifier: Apache-2.0
// Rates of kernels that were fitted to a measurement set, with their errors.
#pragma once

#include <string>

#include "calibration/machine/rate_calibration.h"
#include "report/formats/json.h"
#include "report/formats/table.h"

namespace trainyard {

// All rates, fitted or not; times in seconds.
[[nodiscard]] Table rate_table(const RateCalibration& calibration);
[[nodiscard]] std::string rate_text(const RateCalibration& calibration);
// Rates, errors, and each row.
[[nodiscard]] Json rate_json(const RateCalibration& calibration);

}  // namespace trainyard
