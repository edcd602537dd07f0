// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/fit/time_band.h"

#include <cmath>
#include <vector>

namespace trainyard {

TEST_CASE("a band goes from the 5 % to the 95 % quantile of the weight") {
  std::vector<WeightedError> errors;
  for (int percent = 1; percent <= 100; ++percent) {
    errors.push_back({.surprise = 0.01 * (percent - 50), .weight = 1.0});
  }
  const TimeBand band = band_of(errors);
  REQUIRE(band.low == Approx(std::exp(-0.45)));
  REQUIRE(band.high == Approx(std::exp(0.45)));
  errors.push_back({.surprise = 2.0, .weight = 50.0});
  REQUIRE(band_of(errors).high == Approx(std::exp(2.0)));
  const TimeInterval interval = around(microseconds(100), band);
  REQUIRE(interval.holds(microseconds(100)));
  REQUIRE_FALSE(interval.holds(microseconds(160)));
}

TEST_CASE("a band always holds the prediction itself") {
  const TimeBand band =
      band_of({{.surprise = 0.1, .weight = 1.0}, {.surprise = 0.2, .weight = 1.0}});
  REQUIRE(band.low == 1.0);
  REQUIRE(band.high == Approx(std::exp(0.2)));
}

TEST_CASE("an interval is never faster than the hardware, but holds the prediction") {
  const TimeInterval interval{.low = microseconds(80), .high = microseconds(120)};
  REQUIRE(bounded(interval, microseconds(100), microseconds(50)).low == microseconds(80));
  REQUIRE(bounded(interval, microseconds(100), microseconds(95)).low == microseconds(95));
  REQUIRE(bounded(interval, microseconds(100), microseconds(105)).low == microseconds(100));
  REQUIRE(bounded(interval, microseconds(100), microseconds(95)).high == microseconds(120));
}

}  // namespace trainyard
