// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <deque>

#include "hw/switch/link_credits.h"
#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

}  // namespace

TEST_CASE("credits are never negative, never above 2048 blocks, and lose nothing", "[transport]") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomStream random(seed, "credits");
    const auto buffer = static_cast<std::int64_t>(66 + random.below(4000));
    LaneSender sender;
    LaneReceiver receiver(buffer);
    std::deque<std::int64_t> line;    // On their way.
    std::deque<std::int64_t> stored;  // In the buffer.
    std::int64_t sent = 0;
    std::int64_t released = 0;
    INFO("seed=" << seed);
    for (int step = 0; step < 3000; ++step) {
      switch (random.below(4)) {
        case 0: {
          const auto blocks = static_cast<std::int64_t>(1 + random.below(65));
          if (sender.can_send(blocks)) {
            REQUIRE(blocks <= sender.open());
            sender.send(blocks);
            line.push_back(blocks);
            sent += blocks;
          }
          break;
        }
        case 1:
          if (!line.empty()) {
            receiver.receive(line.front());  // Stops the program if there is no room.
            stored.push_back(line.front());
            line.pop_front();
          }
          break;
        case 2:
          if (!stored.empty()) {
            receiver.release(stored.front());
            released += stored.front();
            stored.pop_front();
          }
          break;
        default:
          sender.on_limit(receiver.limit());
      }
      REQUIRE(sender.open() <= kMostCredits);
      REQUIRE(receiver.free_blocks() >= 0);
    }
    REQUIRE(sent > 4096);  // The counters have wrapped.
    REQUIRE(released <= sent);
  }
}

TEST_CASE("without a word from the receiver nothing may be sent", "[transport]") {
  LaneSender sender;
  REQUIRE(!sender.can_send(1));
  LaneReceiver receiver(100);
  sender.on_limit(receiver.limit());
  REQUIRE(sender.open() == 100);
  REQUIRE(sender.can_send(100));
  REQUIRE(!sender.can_send(101));
  LaneReceiver large(10'000);
  sender.on_limit(large.limit());
  REQUIRE(sender.open() == kMostCredits);
}

TEST_CASE("a packet that the line lost does not take its credit with it", "[transport]") {
  LaneSender sender;
  LaneReceiver receiver(65);
  sender.on_limit(receiver.limit());
  sender.send(65);  // Lost.
  REQUIRE(!sender.can_send(1));
  receiver.on_total_sent(sender.total_sent());
  REQUIRE(receiver.news(65) == 65);
  sender.on_limit(receiver.limit());
  REQUIRE(sender.can_send(65));
}

TEST_CASE("a buffer for the full rate is a round trip and two packets", "[transport]") {
  // 400 Gb/s over 100 m: 50 kB, and what updates and packets add.
  const std::int64_t blocks = credit_buffer(gigabits_per_second(400), 500_ns, 200_ns, Bytes(4122));
  REQUIRE(blocks == (50'000 + 10'000 + 2 * 4122 + 63) / 64);
  REQUIRE(credit_update_period(gigabits_per_second(400), 4).microseconds() ==
          Approx(5.24).margin(0.01));
}

}  // namespace trainyard
