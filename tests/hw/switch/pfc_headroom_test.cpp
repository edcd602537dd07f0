// SPDX-License-Identifier: Apache-2.0
// Headroom as computed is enough and not much more than enough: one link at full rate in both
// directions, a group that nothing leaves, and every phase of what is on the wire.
#include "support/catch.h"

#include <algorithm>
#include <array>

#include "hw/switch/pfc.h"
#include "hw/switch/shared_buffer.h"
#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

struct Case {
  Bandwidth rate{};
  SimTime delay{};
  Bytes mtu{};
  SimTime data_phase{};     // When the first frame to the switch begins.
  SimTime reverse_phase{};  // When a frame from the switch begins.
  Bytes threshold{};
};

struct Outcome {
  Bytes headroom_used{};
  bool has_lost = false;
};

// Frames come back to back; the group tells their sender to stop, which obeys as late as it may.
Outcome run(const Case& terms, Bytes headroom) {
  const Bytes frame = terms.mtu + Bytes(38);
  const SimTime each = transfer_time(frame, terms.rate);
  // Beside what the group owns only 128 B are shared, of which it may take one.
  SharedBuffer buffer({.size = terms.threshold + headroom + Bytes(128)}, 1, 1);
  buffer.set_ingress(
      0, 0, {.lossless = true, .reserve = terms.threshold, .headroom = headroom, .alpha = -7});
  SimTime stop = SimTime::max();
  for (SimTime start = terms.data_phase; start < stop; start += each) {
    const SimTime arrival = start + each + terms.delay;
    const Admission admission = buffer.admit({}, frame);
    if (!admission.accepted) {
      return {.headroom_used = buffer.headroom_bytes(0, 0), .has_lost = true};
    }
    if (admission.xoff) {
      // Behind the frame that is on the wire the other way.
      const std::int64_t behind =
          (arrival - terms.reverse_phase).picoseconds() / each.picoseconds() + 1;
      const SimTime begin = terms.reverse_phase + each * behind;
      const SimTime received = begin + transfer_time(kPfcWireBytes, terms.rate) + terms.delay;
      stop = received + reaction_time(terms.rate);
    }
  }
  return {.headroom_used = buffer.headroom_bytes(0, 0), .has_lost = false};
}

Case random_case(RandomStream& random) {
  constexpr std::array<std::int64_t, 5> kSpeeds{25, 100, 200, 400, 800};
  Case terms;
  terms.rate = gigabits_per_second(kSpeeds[random.below(kSpeeds.size())]);
  terms.delay = 5_ns * static_cast<std::int64_t>(1 + random.below(300));
  terms.mtu = Bytes(static_cast<std::int64_t>(256 + random.below(8960)));
  const SimTime each = transfer_time(terms.mtu + Bytes(38), terms.rate);
  const auto period = static_cast<std::uint64_t>(each.picoseconds());
  terms.data_phase = SimTime(static_cast<std::int64_t>(random.below(period)));
  terms.reverse_phase = SimTime(static_cast<std::int64_t>(random.below(period)));
  terms.threshold = Bytes(static_cast<std::int64_t>(20'000 + random.below(20'000)));
  return terms;
}

Bytes flight(const Case& terms) {
  return pfc_headroom({.rate = terms.rate, .delay = terms.delay, .mtu = terms.mtu});
}

}  // namespace

TEST_CASE("with the headroom as computed and a frame nothing is lost, at any phase",
          "[transport]") {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomStream random(seed, "headroom");
    const Case terms = random_case(random);
    const Bytes frame = terms.mtu + Bytes(38);
    INFO("seed=" << seed);
    REQUIRE(!run(terms, flight(terms) + frame).has_lost);
  }
}

TEST_CASE("with two frames less than that something is lost at the worst phase", "[transport]") {
  int needs_more = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    RandomStream random(seed, "headroom");
    Case terms = random_case(random);
    const Bytes frame = terms.mtu + Bytes(38);
    // The packet that triggers XOFF is the first in the headroom.
    terms.threshold = frame * 3 + Bytes(1);
    const SimTime each = transfer_time(frame, terms.rate);
    Bytes max;
    for (int phase = 0; phase < 64; ++phase) {
      terms.reverse_phase = SimTime(each.picoseconds() * phase / 64);
      max = std::max(max, run(terms, mib(8)).headroom_used);
    }
    needs_more += max > flight(terms) ? 1 : 0;
    INFO("seed=" << seed);
    REQUIRE(max > flight(terms) - frame);
    REQUIRE(max <= flight(terms) + frame);
  }
  REQUIRE(needs_more > 0);  // So the frame beside the flight is no luxury.
}

}  // namespace trainyard
