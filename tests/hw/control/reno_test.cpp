// SPDX-License-Identifier: Apache-2.0
// Reno by closed forms: slow start doubles a round trip, avoidance adds a packet.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hw/control/reno.h"

namespace trainyard {
namespace {

constexpr Bytes kRenoPacket{1538};
constexpr std::uint64_t kRenoSize = 1538;

// A sender whose window is always used, and a receiver that answers each packet.
struct RenoPath {
  explicit RenoPath(const RenoSettings& settings) : flow(settings) {}

  void ack() {
    const auto packets = static_cast<std::uint64_t>(flow.window().packets());
    next = std::max(next, acked + packets * kRenoSize);
    acked += kRenoSize;
    flow.on_ack({.acked = acked, .next = next, .size = kRenoPacket}, kRenoPacket);
  }
  // All that is under way at the beginning.
  void round() {
    const auto packets = static_cast<std::uint64_t>(flow.window().packets());
    for (const std::uint64_t end = acked + packets * kRenoSize; acked < end;) {
      ack();
    }
  }

  Reno flow;
  std::uint64_t acked = 0;
  std::uint64_t next = 0;
};

}  // namespace

TEST_CASE("slow start doubles a window that is used in each round trip", "[transport]") {
  const RenoSettings settings;
  RenoPath path(settings);
  for (const double packets : {10.0, 20.0, 40.0, 80.0, 160.0}) {
    REQUIRE(path.flow.window().packets() == packets);
    path.round();
  }
}

TEST_CASE("a window that is not used does not grow", "[transport]") {
  const RenoSettings settings;
  RenoPath path(settings);
  for (int i = 0; i < 100; ++i) {
    path.acked += kRenoSize;
    path.flow.on_ack({.acked = path.acked, .next = path.acked + kRenoSize, .size = kRenoPacket},
                     kRenoPacket);
  }
  REQUIRE(path.flow.window().packets() == 10.0);
}

TEST_CASE("Reno halves its window once for the losses of a window and adds a packet a round trip",
          "[transport]") {
  const RenoSettings settings;
  RenoPath path(settings);
  path.round();
  path.round();
  path.flow.on_loss();
  path.flow.on_loss();
  REQUIRE(path.flow.window().packets() == 20.0);
  REQUIRE(path.flow.window().in_recovery());
  while (path.flow.window().in_recovery()) {
    REQUIRE(path.flow.window().packets() == 20.0);
    path.ack();
  }
  for (int i = 0; i < 10; ++i) {
    path.round();
  }
  // An ACK adds 1 / w, and a round of w, rounded down, that grows meanwhile at least 1 - 1.5 / w.
  const double grown = path.flow.window().packets();
  REQUIRE(grown <= 30.0);
  REQUIRE(grown >= 30.0 - 10.0 * 1.5 / 20.0);
  path.flow.on_loss();
  REQUIRE(path.flow.window().packets() == Approx(grown / 2.0));
}

TEST_CASE("a timeout leaves Reno a packet, and slow start goes to half of the window before it",
          "[transport]") {
  const RenoSettings settings;
  RenoPath path(settings);
  path.round();
  path.flow.on_timeout();
  path.flow.on_timeout();  // Of the packet that was sent again.
  REQUIRE(path.flow.window().packets() == 1.0);
  REQUIRE(path.flow.window().threshold() == 10.0);
  path.ack();
  REQUIRE(path.flow.window().packets() == 2.0);
}

TEST_CASE("with a loss each 1/p packets Reno's mean window is 1.22 / sqrt(p)", "[transport]") {
  const RenoSettings settings;
  RenoPath path(settings);
  const int period = 3750;  // Of a sawtooth from 50 to 100 packets: 3/8 of 100^2.
  double least = 1e9;
  double most = 0.0;
  for (int i = 0; i < 40 * period; ++i) {
    path.ack();
    if (i > 20 * period) {
      least = std::min(least, path.flow.window().packets());
      most = std::max(most, path.flow.window().packets());
    }
    if (i % period == 0) {
      path.flow.on_loss();
    }
  }
  REQUIRE(most / least == Approx(2.0).epsilon(0.02));
  REQUIRE(0.75 * most == Approx(std::sqrt(1.5 * period)).epsilon(0.05));
}

}  // namespace trainyard
