// SPDX-License-Identifier: Apache-2.0
// Sums are taken in the order of arrival, so that equal runs give equal bits.
#include "sim/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/check.h"

namespace trainyard {

void Samples::add(double value) {
  CHECK(std::isfinite(value), "a sample must be finite");
  values_.push_back(value);
}

double Samples::mean() const {
  CHECK(!values_.empty(), "no samples");
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

double Samples::min() const {
  CHECK(!values_.empty(), "no samples");
  return *std::min_element(values_.begin(), values_.end());
}

double Samples::max() const {
  CHECK(!values_.empty(), "no samples");
  return *std::max_element(values_.begin(), values_.end());
}

double Samples::percentile(double percent) const {
  CHECK(!values_.empty(), "no samples");
  CHECK(percent >= 0.0, "a percentile below 0");
  CHECK(percent <= 100.0, "a percentile above 100");
  const double position = percent / 100.0 * static_cast<double>(values_.size() - 1);
  const auto index = static_cast<std::ptrdiff_t>(position);
  std::vector<double> values = values_;
  const auto lower = values.begin() + index;
  std::nth_element(values.begin(), lower, values.end());
  if (lower + 1 == values.end()) {
    return *lower;
  }
  const double upper = *std::min_element(lower + 1, values.end());
  return *lower + (position - static_cast<double>(index)) * (upper - *lower);
}

}  // namespace trainyard
