// SPDX-License-Identifier: Apache-2.0
// Samples against values computed by hand and against sorting.
#include "support/catch.h"

#include "sim/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

TEST_CASE("samples give count, mean and extremes") {
  Samples samples;
  REQUIRE(samples.count() == 0);
  for (const double value : {4.0, -1.0, 3.0}) {
    samples.add(value);
  }
  REQUIRE(samples.count() == 3);
  REQUIRE(samples.mean() == 2.0);
  REQUIRE(samples.min() == -1.0);
  REQUIRE(samples.max() == 4.0);
}

TEST_CASE("all summaries of one sample are that sample") {
  Samples samples;
  samples.add(2.5);
  REQUIRE(samples.mean() == 2.5);
  REQUIRE(samples.percentile(0.0) == 2.5);
  REQUIRE(samples.median() == 2.5);
  REQUIRE(samples.percentile(100.0) == 2.5);
}

TEST_CASE("percentiles are interpolated linearly between the nearest samples") {
  Samples samples;
  for (const double value : {40.0, 10.0, 30.0, 20.0}) {
    samples.add(value);
  }
  REQUIRE(samples.percentile(0.0) == 10.0);
  REQUIRE(samples.percentile(25.0) == 17.5);
  REQUIRE(samples.median() == 25.0);
  REQUIRE(samples.percentile(90.0) == Approx(37.0));
  REQUIRE(samples.percentile(100.0) == 40.0);
}

TEST_CASE("percentiles agree with those of the sorted samples and do not depend on the order") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed, "samples");
    Samples samples;
    std::vector<double> sorted;
    for (std::uint64_t i = 0, count = 2 + random.below(50); i < count; ++i) {
      sorted.push_back(static_cast<double>(random.below(20)));  // Few values, so many are equal.
      samples.add(sorted.back());
    }
    std::sort(sorted.begin(), sorted.end());
    INFO("seed=" << seed);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const double percent =
          100.0 * static_cast<double>(i) / static_cast<double>(sorted.size() - 1);
      REQUIRE(samples.percentile(percent) == Approx(sorted[i]).margin(1e-9));
    }
    REQUIRE(samples.count() == sorted.size());
  }
}

}  // namespace
}  // namespace trainyard
