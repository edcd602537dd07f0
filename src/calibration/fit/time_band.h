// SPDX-License-Identifier: Apache-2.0
// A band of measured over predicted times in which nine in ten lie, and the interval that it gives
// around a prediction.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// A row: ln(measured / predicted), and what the row weighs.
struct WeightedError {
  double surprise;
  double weight;
};

// Measured over predicted.
struct TimeBand {
  double low = 1.0;
  double high = 1.0;
  std::size_t systems = 0;
  std::size_t rows = 0;

  // "{low: 0.900, high: 1.100, systems: 3, rows: 20}".
  [[nodiscard]] std::string to_yaml() const;
};

struct TimeInterval {
  SimTime low;
  SimTime high;
  [[nodiscard]] bool holds(SimTime time) const { return low <= time && time <= high; }
};

// From the quantile of 5 % of the weight to that of 95 %; it always holds the prediction itself.
// There must be errors.
[[nodiscard]] TimeBand band_of(std::vector<WeightedError> errors);
void band_fields(Fields& fields, TimeBand& band);
[[nodiscard]] TimeInterval around(SimTime predicted, const TimeBand& band);
// The same, whose fast end is no faster than `bound`, which the hardware cannot go below; but it
// holds the prediction.
[[nodiscard]] TimeInterval bounded(const TimeInterval& interval, SimTime predicted, SimTime bound);

}  // namespace trainyard
