// SPDX-License-Identifier: Apache-2.0
// Summaries of observations for reports. The results are `double` and never reach an event.
#pragma once

#include <cstddef>
#include <vector>

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

}  // namespace trainyard
