// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/control/timely.h"

namespace trainyard {
namespace {

using namespace literals;

TimelySettings settings_of_paper() {
  TimelySettings settings;
  settings.line = gigabits_per_second(10);
  settings.min = Bandwidth(10'000'000);
  settings.additive = Bandwidth(10'000'000);
  return settings;
}

double gigabits(const Timely& timely) {
  return static_cast<double>(timely.rate().bits_per_second()) / 1e9;
}

}  // namespace

TEST_CASE("TIMELY follows the gradient between its thresholds", "[transport]") {
  const TimelySettings settings = settings_of_paper();
  Timely timely(settings);
  timely.on_completion(100_us);
  REQUIRE(gigabits(timely) == 10.0);
  timely.on_completion(110_us);  // g = 0.875 x 10 / 20 = 0.4375
  REQUIRE(gigabits(timely) == Approx(10.0 * (1.0 - 0.8 * 0.4375)));
  const double before = gigabits(timely);
  timely.on_completion(90_us);  // d = 0.125 x 8.75 - 0.875 x 20 < 0
  REQUIRE(gigabits(timely) == Approx(before + 0.01));
}

TEST_CASE("TIMELY ignores the gradient beyond its thresholds", "[transport]") {
  const TimelySettings settings = settings_of_paper();
  Timely timely(settings);
  timely.on_completion(100_us);
  timely.on_completion(1000_us);
  REQUIRE(gigabits(timely) == Approx(10.0 * (1.0 - 0.8 * 0.5)));
  const double before = gigabits(timely);
  timely.on_completion(40_us);
  timely.on_completion(49_us);  // Rising, but below the threshold.
  REQUIRE(gigabits(timely) == Approx(before + 0.02));
}

TEST_CASE("five falling RTTs in a row make TIMELY five times as fast", "[transport]") {
  const TimelySettings settings = settings_of_paper();
  Timely timely(settings);
  timely.on_completion(400_us);
  timely.on_completion(480_us);
  double before = gigabits(timely);
  for (int i = 0; i < 4; ++i) {
    timely.on_completion(300_us - 10_us * i);
  }
  REQUIRE(gigabits(timely) == Approx(before + 0.04));
  before = gigabits(timely);
  timely.on_completion(200_us);
  REQUIRE(gigabits(timely) == Approx(before + 0.05));
}

TEST_CASE("TIMELY flows that start unequal stay unequal at a steady RTT", "[transport]") {
  const TimelySettings settings = settings_of_paper();
  Timely slow(settings);
  Timely fast(settings);
  slow.on_completion(100_us);
  slow.on_completion(120_us);
  fast.on_completion(100_us);
  const double gap = gigabits(fast) - gigabits(slow);
  slow.on_completion(100_us);
  REQUIRE(gap > 1.0);
  for (int i = 0; i < 3; ++i) {
    slow.on_completion(100_us);
    fast.on_completion(100_us);
  }
  REQUIRE(gigabits(fast) - gigabits(slow) > 0.9 * gap);
}

}  // namespace trainyard
