// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/ecn.h"
#include "sim/random.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kHighest = 0xFFFFFFFF;

double marked_share(const RedMarker& marker, Bytes queue) {
  RandomStream random(7, "marks");
  constexpr int kDraws = 20'000;
  int marked = 0;
  for (int i = 0; i < kDraws; ++i) {
    marked += marker.marks(queue, static_cast<std::uint32_t>(random.next())) ? 1 : 0;
  }
  return static_cast<double>(marked) / kDraws;
}

}  // namespace

TEST_CASE("nothing is marked up to Kmin, everything above Kmax", "[transport]") {
  const RedMarker marker({.kmin = Bytes(5'000), .kmax = Bytes(200'000), .pmax = 0.01});
  REQUIRE(!marker.marks(Bytes(0), 0));
  REQUIRE(!marker.marks(Bytes(5'000), 0));
  REQUIRE(marker.marks(Bytes(200'001), kHighest));
}

TEST_CASE("between them the chance rises in a straight line to Pmax", "[transport]") {
  const RedMarker marker({.kmin = Bytes(100'000), .kmax = Bytes(400'000), .pmax = 0.2});
  REQUIRE(marked_share(marker, Bytes(400'000)) == Approx(0.2).margin(0.01));
  REQUIRE(marked_share(marker, Bytes(250'000)) == Approx(0.1).margin(0.01));
  REQUIRE(marked_share(marker, Bytes(100'001)) == Approx(0.0).margin(0.001));
}

TEST_CASE("equal thresholds are a step, and a Pmax of 1 marks with any draw at Kmax",
          "[transport]") {
  const RedMarker step({.kmin = Bytes(30'000), .kmax = Bytes(30'000)});
  REQUIRE(!step.marks(Bytes(30'000), 0));
  REQUIRE(step.marks(Bytes(30'001), kHighest));
  const RedMarker sure({.kmin = Bytes(1), .kmax = gib(2), .pmax = 1.0});
  REQUIRE(sure.marks(gib(2), kHighest));
  REQUIRE(!sure.marks(gib(1), kHighest));
}

TEST_CASE("a profile grows with the rate of the link", "[transport]") {
  const RedProfile base{.kmin = Bytes(100'000), .kmax = Bytes(400'000), .pmax = 0.2};
  const RedProfile fast = base.scaled(gigabits_per_second(400), gigabits_per_second(25));
  REQUIRE(fast.kmin == Bytes(1'600'000));
  REQUIRE(fast.kmax == Bytes(6'400'000));
  REQUIRE(fast.pmax == 0.2);
}

}  // namespace trainyard
