// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/switch/slow_receiver.h"

#include <algorithm>

#include "sim/random.h"

namespace trainyard {
namespace {

// Half of a line of 100 Gb/s.
const SlowReceiverSettings kHalf{
    .drain = gigabits_per_second(50), .xoff = Bytes(100'000), .xon = Bytes(60'000)};

TEST_CASE("a receiver as fast as its line never stops it", "[transport]") {
  SlowReceiverSettings settings = kHalf;
  settings.drain = gigabits_per_second(100);
  SlowReceiver receiver(settings);
  for (int i = 1; i <= 1000; ++i) {
    const SimTime now = transfer_time(Bytes(4178), gigabits_per_second(100)) * i;
    REQUIRE(!receiver.on_packet(Bytes(4178), now));
    REQUIRE(receiver.resume_time() == SimTime::max());
  }
}

TEST_CASE("at half of the line it stops at twice the threshold, and goes on at the lower one",
          "[transport]") {
  SlowReceiver receiver(kHalf);
  const SimTime each = transfer_time(Bytes(1000), gigabits_per_second(100));
  SimTime now;
  int packets = 0;
  do {
    now += each;
    ++packets;
  } while (!receiver.on_packet(Bytes(1000), now));
  // Each packet adds a half of itself, and the last one counts as a whole.
  REQUIRE(packets == 200);
  REQUIRE(receiver.is_paused());
  REQUIRE(receiver.backlog(receiver.resume_time()) == transfer_time(kHalf.xon, kHalf.drain));
  // What was under way puts it off.
  const SimTime before = receiver.resume_time();
  REQUIRE(!receiver.on_packet(Bytes(1000), now + each));
  REQUIRE(receiver.resume_time() == before + transfer_time(Bytes(1000), kHalf.drain));
  receiver.resume();
  REQUIRE(receiver.resume_time() == SimTime::max());
}

TEST_CASE("a sender that obeys at once is held to the rate of the receiver", "[transport]") {
  RandomStream random(3, "slow receiver");
  SlowReceiver receiver(kHalf);
  const SimTime each = transfer_time(Bytes(4096), gigabits_per_second(100));
  SimTime now;
  std::int64_t bytes = 0;
  SimTime max;
  for (int i = 0; i < 20'000; ++i) {
    now += each;
    bytes += 4096;
    if (receiver.on_packet(Bytes(4096), now)) {
      max = std::max(max, receiver.backlog(now));
      now = receiver.resume_time();
      receiver.resume();
    }
  }
  // What still waits at the end was taken beside that: 0.1 %.
  const double rate = 8.0 * static_cast<double>(bytes) / now.seconds() / 1e9;
  REQUIRE(rate == Approx(50.0).epsilon(0.002));
  REQUIRE(max <= transfer_time(kHalf.xoff + Bytes(4096), kHalf.drain));
}

}  // namespace
}  // namespace trainyard
