// SPDX-License-Identifier: Apache-2.0
// CUBIC, by closed forms of RFC 9438: W(t) = C (t - K)^3 + Wmax, and W_est of section 4.3.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hw/control/cubic.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Bytes kCubicPacket{1538};
constexpr std::uint64_t kCubicSize = 1538;

// A sender whose window is always used; its ACKs are spread over each round trip.
struct CubicPath {
  CubicPath(const CubicSettings& settings, SimTime round_trip) : flow(settings), rtt(round_trip) {}

  void round() {
    const auto packets = static_cast<std::int64_t>(flow.window().packets());
    for (std::int64_t i = 0; i < packets; ++i) {
      now += SimTime(rtt.picoseconds() / packets);
      const auto window = static_cast<std::uint64_t>(flow.window().packets());
      next = std::max(next, acked + window * kCubicSize);
      acked += kCubicSize;
      flow.on_ack({.now = now, .rtt = rtt, .acked = acked, .next = next, .size = kCubicPacket},
                  kCubicPacket);
    }
  }
  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      round();
    }
  }
  // A loss, and the end of its recovery.
  void lose() {
    flow.on_loss();
    while (flow.window().in_recovery()) {
      round();
    }
  }
  [[nodiscard]] double window() const { return flow.window().packets(); }

  Cubic flow;
  SimTime rtt;
  SimTime now{};
  std::uint64_t acked = 0;
  std::uint64_t next = 0;
};

}  // namespace

TEST_CASE("the cube root is that of the library to within rounding", "[transport]") {
  REQUIRE(cube_root(0.0) == 0.0);
  for (double value = 1e-12; value < 1e15; value *= 1.7) {
    REQUIRE(std::abs(cube_root(value) / std::cbrt(value) - 1.0) < 1e-15);
  }
}

TEST_CASE("CUBIC comes back to the window of the loss as C (t - K)^3 + Wmax", "[transport]") {
  const CubicSettings settings{.first_window = 1000, .hystart = false};
  CubicPath path(settings, 100_ms);
  path.round();  // Slow start: 2000 packets.
  path.lose();
  const double k = std::cbrt(2000.0 * 0.3 / 0.4);
  const auto expected = [&](double seconds) { return 2000.0 + 0.4 * std::pow(seconds - k, 3); };
  path.rounds(20);
  REQUIRE(path.window() == Approx(expected(2.05)).epsilon(0.005));
  path.rounds(40);
  REQUIRE(path.window() == Approx(expected(6.05)).epsilon(0.005));
}

TEST_CASE("on short paths CUBIC grows as Reno would that cuts as little", "[transport]") {
  const CubicSettings settings{.first_window = 10, .hystart = false};
  CubicPath path(settings, 1_ms);
  path.round();  // 20 packets; a loss leaves 14.
  path.lose();
  const double before = path.window();
  REQUIRE(before == Approx(14.0).margin(0.6));
  path.rounds(10);  // 3 x 0.3 / 1.7 packets a round trip.
  REQUIRE(path.window() - before == Approx(10 * 3 * 0.3 / 1.7).epsilon(0.06));
  path.rounds(10);  // A packet a round trip above 20.
  REQUIRE(path.window() == Approx(28.7).margin(0.5));
}

TEST_CASE("HyStart ends slow start where round trips grow by an eighth", "[transport]") {
  for (const bool hystart : {false, true}) {
    const CubicSettings settings{.hystart = hystart};
    CubicPath path(settings, 100_ms);
    path.rounds(3);
    REQUIRE(path.window() == 80.0);
    path.rtt = 113_ms;
    path.round();
    REQUIRE(path.flow.window().in_slow_start() != hystart);
    REQUIRE((path.window() < 160.0) == hystart);
  }
}

}  // namespace trainyard
