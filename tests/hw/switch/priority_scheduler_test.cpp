// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <bit>

#include "hw/switch/priority_scheduler.h"
#include "sim/random.h"
#include "support/effort.h"

namespace trainyard {
namespace {

using Sizes = PriorityScheduler::Sizes;

constexpr std::int64_t kLargest = 4200;

Sizes equal_quanta(std::int64_t bytes) {
  Sizes quanta{};
  quanta.fill(bytes);
  return quanta;
}

Sizes random_quanta(RandomStream& random) {
  Sizes quanta{};
  for (std::int64_t& quantum : quanta) {
    quantum = kLargest + static_cast<std::int64_t>(random.below(20'000));
  }
  return quanta;
}

std::int64_t packet_of(RandomStream& random) {
  return 64 + static_cast<std::int64_t>(random.below(kLargest - 63));
}

}  // namespace

TEST_CASE("strict queues go first, the highest first", "[transport]") {
  PriorityScheduler scheduler(0b1100'0000, equal_quanta(10'000));
  REQUIRE(scheduler.pick(0b1100'1001) == 7);
  REQUIRE(scheduler.pick(0b0100'1001) == 6);
  REQUIRE(scheduler.pick(0b0000'0001) == 0);
  REQUIRE(scheduler.pick(0) == PriorityScheduler::kNone);
}

TEST_CASE("weighted queues share the bytes by their quanta, whatever their packets",
          "[transport]") {
  Sizes quanta = equal_quanta(1);
  quanta[3] = 10'000;
  quanta[4] = 30'000;
  PriorityScheduler scheduler(0, quanta);
  Sizes sent{};
  for (int i = 0; i < 20'000; ++i) {
    const int queue = scheduler.pick(0b11000);
    const std::int64_t size = queue == 3 ? 4178 : 300;
    scheduler.sent(queue, size);
    sent.at(static_cast<std::size_t>(queue)) += size;
  }
  const double ratio = static_cast<double>(sent[4]) / static_cast<double>(sent[3]);
  REQUIRE(ratio == Approx(3.0).epsilon(0.01));
}

TEST_CASE("a quantum below a packet only delays it, and a turn that is not used is kept",
          "[transport]") {
  PriorityScheduler scheduler(0, equal_quanta(100));
  for (int i = 0; i < 5; ++i) {
    REQUIRE(scheduler.pick(0b100) == 2);
    scheduler.sent(2, 4178);
  }
  REQUIRE(scheduler.pick(0b101) == 0);
  REQUIRE(scheduler.pick(0b101) == 0);
}

TEST_CASE("whatever is ready goes, and nothing before a strict queue above it", "[transport]") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "scheduler");
    const auto strict = static_cast<std::uint8_t>(random.below(256));
    PriorityScheduler scheduler(strict, random_quanta(random));
    for (int step = 0; step < 300; ++step) {
      const auto ready = static_cast<std::uint8_t>(random.below(256));
      const int picked = scheduler.pick(ready);
      REQUIRE((picked == PriorityScheduler::kNone) == (ready == 0));
      if (ready != 0) {
        REQUIRE((ready >> picked & 1) == 1);
        const unsigned first = ready & strict;
        REQUIRE((first == 0 || picked == static_cast<int>(std::bit_width(first)) - 1));
        scheduler.sent(picked, packet_of(random));
      }
    }
  }
}

TEST_CASE("queues that always have packets share by their quanta within one turn and a packet",
          "[transport]") {
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "scheduler");
    const Sizes quanta = random_quanta(random);
    PriorityScheduler scheduler(0, quanta);
    const auto busy = static_cast<std::uint8_t>(1 + random.below(255));
    Sizes sent{};
    for (int step = 0; step < 500; ++step) {
      const int queue = scheduler.pick(busy);
      const std::int64_t size = packet_of(random);
      scheduler.sent(queue, size);
      sent.at(static_cast<std::size_t>(queue)) += size;
      // After m turns a queue has sent m quanta and less than a packet more; turns of any two
      // differ by one at most.
      double min = 1e18;
      double max = 0;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        if ((busy >> i & 1U) != 0) {
          const auto quantum = static_cast<double>(quanta.at(i));
          const auto bytes = static_cast<double>(sent.at(i));
          min = std::min(min, bytes / quantum);
          max = std::max(max, (bytes - kLargest) / quantum);
        }
      }
      REQUIRE(max <= min + 1);
    }
  }
}

}  // namespace trainyard
