// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/time_band.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace trainyard {
namespace {

// The share that lies outside on each side of an interval of 90 %.
constexpr double kTail = 0.05;
// Limits of what a file may say, and the digits that it has.
constexpr double kMinFactor = 1e-3;
constexpr double kMaxFactor = 1e3;
constexpr std::int64_t kMaxRows = 1'000'000'000;
constexpr double kSteps = 1000.0;

// The least value that at least `share` of the weight does not exceed.
double weighted_quantile(const std::vector<WeightedError>& ascending, double share) {
  double total = 0.0;
  for (const WeightedError& one : ascending) {
    total += one.weight;
  }
  double sum = 0.0;
  for (const WeightedError& one : ascending) {
    sum += one.weight;
    if (sum >= share * total) {
      return one.surprise;
    }
  }
  return ascending.back().surprise;
}

SimTime scaled(SimTime time, double factor) {
  return SimTime(std::llround(static_cast<double>(time.picoseconds()) * factor));
}

}  // namespace

std::string TimeBand::to_yaml() const {
  return fmt::format("{{low: {:.3f}, high: {:.3f}, systems: {}, rows: {}}}",
                     std::floor(low * kSteps) / kSteps, std::ceil(high * kSteps) / kSteps, systems,
                     rows);
}

TimeBand band_of(std::vector<WeightedError> errors) {
  CHECK(!errors.empty(), "a band rests on rows");
  std::ranges::stable_sort(errors, {}, &WeightedError::surprise);
  return {.low = std::min(1.0, std::exp(weighted_quantile(errors, kTail))),
          .high = std::max(1.0, std::exp(weighted_quantile(errors, 1.0 - kTail)))};
}

void band_fields(Fields& fields, TimeBand& band) {
  constexpr Whole kCount{1, kMaxRows};
  fields.required("low", band.low, Number{kMinFactor, 1.0}, "Measured over predicted, at least.");
  fields.required("high", band.high, Number{1.0, kMaxFactor}, "The same, at most.");
  fields.required("systems", band.systems, kCount, "Systems that it rests on.");
  fields.required("rows", band.rows, kCount, "Rows that it rests on.");
}

TimeInterval around(SimTime predicted, const TimeBand& band) {
  return {.low = scaled(predicted, band.low), .high = scaled(predicted, band.high)};
}

TimeInterval bounded(const TimeInterval& interval, SimTime predicted, SimTime bound) {
  return {.low = std::max(interval.low, std::min(predicted, bound)), .high = interval.high};
}

}  // namespace trainyard
