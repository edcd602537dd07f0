// SPDX-License-Identifier: Apache-2.0
// Collects the arithmetic that closed forms do with times.
#pragma once

#include <cmath>

#include "sim/units.h"

namespace trainyard {

[[nodiscard]] inline SimTime scaled(SimTime time, double factor) {
  return SimTime(std::llround(static_cast<double>(time.picoseconds()) * factor));
}

[[nodiscard]] inline SimTime difference_or_zero(SimTime a, SimTime b) {
  return a > b ? a - b : SimTime();
}

}  // namespace trainyard
