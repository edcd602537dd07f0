// SPDX-License-Identifier: Apache-2.0
// Each quadrant of NSCC against its equation, at 100 Gb/s and 12 us, where a and b are 1.
#include "support/catch.h"

#include "hw/control/nscc.h"

#include <algorithm>
#include <cstdint>

namespace trainyard {
namespace {

using namespace literals;

constexpr double kNsccPacket = 4096.0;
constexpr double kBdp = 150'000.0;
constexpr double kBase = 12e6;  // Picoseconds.

NsccSettings reference() {
  return NsccControl::settings(
      {}, {.line = gigabits_per_second(100), .base_rtt = 12_us, .packet = Bytes(4096)});
}

// ACKs of one packet each, `gap` apart.
class Acks {
 public:
  Acks(Nscc& flow, SimTime start, SimTime gap) : flow_(flow), now_(start), gap_(gap) {}

  void give(int count, SimTime rtt, bool is_marked) {
    for (int i = 0; i < count; ++i) {
      acked_ += 4096;
      flow_.on_ack({.now = now_,
                    .rtt = rtt,
                    .acked = acked_,
                    .next = acked_ + in_flight,
                    .size = Bytes(4096),
                    .is_marked = is_marked});
      now_ = now_ + gap_;
    }
  }
  [[nodiscard]] SimTime now() const { return now_; }

  std::uint64_t in_flight = 100'000;

 private:
  Nscc& flow_;
  SimTime now_;
  SimTime gap_;
  std::uint64_t acked_ = 0;
};

// Halves the window by quick adapt, so that increases have room: a loss, and nothing came.
void shrink(Nscc& flow, Acks& acks) {
  acks.give(1, 12_us, false);  // Begins the first interval.
  acks.give(1, 12_us, false);
  flow.on_loss(acks.now() + 1_ms);
}

}  // namespace

TEST_CASE("NSCC begins with the largest window, one and a half of line rate x RTT", "[transport]") {
  const NsccSettings settings = reference();
  const Nscc flow(settings);
  REQUIRE(settings.target == 12_us);
  REQUIRE(flow.window() == Approx(1.5 * kBdp));
}

TEST_CASE("the least round trip so far is the base, and bounds the window", "[transport]") {
  const NsccSettings settings = reference();
  Nscc flow(settings);
  Acks acks(flow, 1_us, 1_ns);
  acks.give(1, 8_us, false);
  REQUIRE(flow.largest_window() == Approx(100'000.0 * 1.5));
  REQUIRE(flow.window() <= flow.largest_window());
}

TEST_CASE("NSCC without delay and mark grows in proportion to what the delay leaves of the target",
          "[transport]") {
  const NsccSettings settings = reference();
  for (const SimTime delay : {3_us, 6_us, 11_us}) {
    Nscc flow(settings);
    Acks acks(flow, 1_us, 1_ns);
    shrink(flow, acks);
    const double before = flow.window();
    Acks later(flow, 2_ms, 1_ns);
    later.give(1, 12_us + delay, false);  // Ends the round trip: what is summed up, and eta.
    const double share = 1.0 - delay.real_picoseconds() / kBase;
    const double grown = before + 4.0 * kNsccPacket * share * kNsccPacket / before;
    REQUIRE(flow.window() == Approx(grown + 0.15 * kNsccPacket));
    // The next eight are summed up; the ninth applies them, without eta within the round trip.
    const double now = flow.window();
    later.give(8, 12_us + delay, false);
    REQUIRE(flow.window() == now);
    later.give(1, 12_us + delay, false);
    REQUIRE(flow.window() == Approx(now + 9 * 4.0 * kNsccPacket * share * kNsccPacket / now));
  }
}

TEST_CASE("NSCC with a mark and little delay keeps its window but for eta", "[transport]") {
  const NsccSettings settings = reference();
  Nscc flow(settings);
  Acks acks(flow, 1_us, 1_ns);
  acks.in_flight = 0;  // So that no mark is ignored.
  shrink(flow, acks);
  const double before = flow.window();
  Acks later(flow, 2_ms, 1_ns);
  later.give(30, 18_us, true);
  REQUIRE(flow.window() == Approx(before + 0.15 * kNsccPacket));
}

TEST_CASE("NSCC with delay and without a mark grows by a fair share", "[transport]") {
  const NsccSettings settings = reference();
  Nscc flow(settings);
  Acks acks(flow, 1_us, 1_ns);
  shrink(flow, acks);
  const double before = flow.window();
  Acks later(flow, 2_ms, 1_ns);
  later.give(1, 30_us, false);
  REQUIRE(flow.window() ==
          Approx(before + 5.0 * kNsccPacket * kNsccPacket / before + 0.15 * kNsccPacket));
}

TEST_CASE(
    "NSCC with delay and marks decreases once a round trip, by the average delay, at most by "
    "half",
    "[transport]") {
  const NsccSettings settings = reference();
  Nscc flow(settings);
  Acks acks(flow, 1_us, 1_ns);
  acks.give(1, 12_us, false);
  double average = 0.0;
  int cuts = 0;
  for (int i = 0; i < 400; ++i) {
    const double before = flow.window();
    acks.give(1, 42_us, true);
    average = 0.0125 * 30e6 + 0.9875 * average;
    REQUIRE(flow.average_delay() == Approx(average));
    if (flow.window() < before) {
      ++cuts;
      REQUIRE(average > kBase);
      REQUIRE(flow.window() == Approx(before * (1.0 - 0.8 * (average - kBase) / average)));
    }
  }
  REQUIRE(cuts == 0);  // All of them within 12 us of the start.
  Acks later(flow, 50_us, 20_us);
  for (int i = 0; i < 200; ++i) {
    const double before = flow.window();
    later.give(1, 50_us, true);
    const double share = 1.0 - 0.8 * (flow.average_delay() - kBase) / flow.average_delay();
    const double cut = std::max(before * std::max(share, 0.5), kNsccPacket);
    REQUIRE(flow.window() == Approx(cut + 0.15 * kNsccPacket));
  }
}

TEST_CASE("a whole window without delay lets NSCC grow fast until delay comes", "[transport]") {
  const NsccSettings settings = reference();
  Nscc whole(settings);
  Acks first(whole, 1_us, 1_ns);
  first.give(54, 12_us, false);
  REQUIRE(!whole.is_fast());
  first.give(1, 12_us, false);  // More than 225,000 B.
  REQUIRE(whole.is_fast());
  Nscc flow(settings);
  Acks acks(flow, 1_us, 1_ns);
  shrink(flow, acks);
  Acks later(flow, 2_ms, 1_ns);
  later.give(2, 12_us, false);
  REQUIRE(flow.is_fast());
  const double before = flow.window();
  later.give(4, 12_us, false);
  REQUIRE(flow.window() >= before + 4 * 0.25 * kNsccPacket - 1e-6);
  later.give(1, 14_us, false);
  REQUIRE(!flow.is_fast());
}

TEST_CASE("after a loss quick adapt takes what came in an interval, and ignores old marks",
          "[transport]") {
  const NsccSettings settings = reference();
  Nscc flow(settings);
  Acks acks(flow, 1_us, 1_ns);
  acks.give(1, 12_us, false);  // The interval ends 24 us later.
  acks.give(3, 14_us, true);
  const double before = flow.window();
  flow.on_loss(10_us);
  REQUIRE(flow.window() == Approx(before - kNsccPacket));
  flow.on_loss(30_us);
  REQUIRE(flow.window() == Approx(3 * kNsccPacket));
  const double adapted = flow.window();
  Acks old(flow, 31_us, 1_ns);
  old.give(20, 60_us, true);  // Of the 100 kB in flight by then: neither cut nor eta.
  REQUIRE(flow.window() == adapted);
}

TEST_CASE("the marking of NSCC is its own, and each packet is answered", "[transport]") {
  const ControlTraits traits = NsccControl::traits({});
  REQUIRE(traits.packets_for_ack(Bytes(4178)) == 1);
  REQUIRE(traits.marks == MarkSignal::Echoes);
  REQUIRE(traits.marking == "nscc");
}

}  // namespace trainyard
