// SPDX-License-Identifier: Apache-2.0
// Summaries of observations for reports. The results are `double` and never reach an event.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/units.h"

namespace trainyard {

// Nine values in ten of a normal distribution are within as many standard deviations of its mean.
inline constexpr double kNormal90Percent = 1.645;

// A set of numbers, all of them kept. The queries below need at least one number, but for count().
class Samples {
 public:
  // `value` must be finite.
  void add(double value);

  [[nodiscard]] std::size_t count() const { return values_.size(); }
  [[nodiscard]] double mean() const;
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;
  // The value below which `percent` per cent lie, 0 to 100, interpolated linearly between the two
  // nearest (type 7 of Hyndman and Fan 1996, the default of numpy and R). Costs O(count).
  [[nodiscard]] double percentile(double percent) const;
  [[nodiscard]] double median() const { return percentile(50.0); }

 private:
  std::vector<double> values_;
};

// The average over time of a value that changes in steps, such as a link's utilisation or the depth
// of a queue. Times must not decrease. If several values are set at one instant, the last one
// counts for the average, while max() sees each.
class TimeWeightedAverage {
 public:
  explicit TimeWeightedAverage(SimTime start, double value = 0.0);

  // Sets the value from `now` on to `value`, which must be finite.
  void set(SimTime now, double value);
  void add(SimTime now, double change) { set(now, value_ + change); }

  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] double max() const { return max_; }
  // Returns the average from the start to `now`; at the start itself, the value.
  [[nodiscard]] double average(SimTime now) const;

 private:
  [[nodiscard]] double area_until(SimTime now) const;

  SimTime start_;
  SimTime changed_;
  double value_;
  double max_;
  double area_ = 0.0;  // The integral from start_ to changed_, in value times picoseconds.
};

}  // namespace trainyard
