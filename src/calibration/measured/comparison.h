// SPDX-License-Identifier: Apache-2.0
// Predicted times against a measured table.
//
// The error of a row is predicted / measured - 1. Summaries use |ln(predicted / measured)|, which
// counts "twice as long" and "half as long" alike, in two regimes: below 64 KiB, where launch and
// latency decide, and from there on, where bandwidth does.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "calibration/measured/measurement.h"
#include "sim/units.h"

namespace trainyard {

// Messages below this size are "small" in every summary.
inline constexpr Bytes kSmallMessageLimit = kib(64);

struct RowComparison {
  Bytes size;
  SimTime predicted;
  SimTime measured;
  [[nodiscard]] double relative_error() const { return predicted / measured - 1.0; }
};

// The measured row of exactly this size. Among several it is the one with the median time (the
// lower of the middle two); nullptr if there is none.
[[nodiscard]] const MeasuredRow* find_row(const MeasuredTable& table, Bytes size);

struct RegimeError {
  std::size_t rows = 0;
  // Quantiles of |ln(predicted / measured)|, by nearest rank: the smallest value that at least half
  // (90 %) of the rows do not exceed. 0 without rows.
  double median = 0.0;
  double p90 = 0.0;
};

// Summarises these values of |ln(predicted / measured)|.
[[nodiscard]] RegimeError regime_error(std::vector<double> errors);

struct ComparisonSummary {
  RegimeError small;                     // Below kSmallMessageLimit.
  RegimeError large;                     // The rest.
  std::optional<RowComparison> largest;  // The row of the largest size.
};

[[nodiscard]] ComparisonSummary summarise(std::span<const RowComparison> rows);

}  // namespace trainyard
