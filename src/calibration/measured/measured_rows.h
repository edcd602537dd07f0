// SPDX-License-Identifier: Apache-2.0
// Shares what both readers of measured tables need: printed numbers, and the step from what a row
// says to what a table holds, with remarks on what had to be computed or does not fit together.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "calibration/measured/measurement.h"
#include "sim/units.h"

namespace trainyard {

// A non-negative number as text gave it. The true value lies within half_step of it: "91.10" stands
// for 91.095 to 91.105.
struct PrintedNumber {
  double value = 0.0;
  double half_step = 0.0;
};

// The whole text as a non-negative decimal number; nothing for anything else.
[[nodiscard]] std::optional<PrintedNumber> parse_printed(std::string_view text);

// A time with its bandwidths; what the source does not print is absent.
struct PrintedTime {
  std::optional<PrintedNumber> time_us;
  std::optional<PrintedNumber> algbw_gbps;
  std::optional<PrintedNumber> busbw_gbps;
};

struct PrintedRow {
  Bytes size;
  PrintedTime out_of_place;
  std::optional<PrintedTime> in_place;
  std::size_t line = 0;  // Line of the log; 0 if it is of no log.
};

// Returns why a row cannot be used, for the reader to report with its place; nothing if it can: the
// time must be positive and printed or computable. The factor is busbw over algbw, where known.
[[nodiscard]] std::optional<std::string_view> unusable(const PrintedRow& row,
                                                       std::optional<double> factor);

// bus_factor of the table's operation and ranks, if both are known and it is not zero.
[[nodiscard]] std::optional<double> factor_of(const MeasuredTable& table);

// Appends `rows`, none of them unusable, to table.rows, and the remarks on them. Left out are rows
// without a time whose bandwidth is rounded too much to compute one, such as 0.01 GB/s; in-place
// values of that kind are dropped.
void add_rows(const std::vector<PrintedRow>& rows, MeasuredTable& table);

}  // namespace trainyard
