// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <array>
#include <map>

#include "hw/lane_arbiter.h"

namespace trainyard {
namespace {

using Blocks = std::array<std::int64_t, 16>;
using Sizes = PriorityScheduler::Sizes;

Blocks all_of(std::int64_t blocks) {
  Blocks sizes{};
  sizes.fill(blocks);
  return sizes;
}

}  // namespace

TEST_CASE("lanes of one table share by their weights", "[transport]") {
  LaneArbiter arbiter({}, {{0, 65}, {1, 130}, {2, 195}}, LaneArbiter::kUnlimited);
  std::map<int, int> sent;
  for (int i = 0; i < 600; ++i) {
    ++sent[arbiter.pick(0b111, all_of(65))];
  }
  REQUIRE(sent == std::map<int, int>{{0, 100}, {1, 200}, {2, 300}});
}

TEST_CASE("a lane with nothing to send gives its turn away", "[transport]") {
  LaneArbiter arbiter({}, {{0, 200}, {1, 200}}, LaneArbiter::kUnlimited);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(arbiter.pick(0b10, all_of(65)) == 1);
  }
  REQUIRE(arbiter.pick(0, all_of(65)) == LaneArbiter::kNoLane);
}

TEST_CASE("the high table comes first, up to its limit while the low one waits", "[transport]") {
  LaneArbiter strict({{1, 255}}, {{0, 255}}, LaneArbiter::kUnlimited);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(strict.pick(0b11, all_of(65)) == 1);
  }
  REQUIRE(strict.pick(0b01, all_of(65)) == 0);
  LaneArbiter fair({{1, 255}}, {{0, 255}}, 1);  // 64 blocks: exceeded by each packet of 65.
  std::map<int, int> sent;
  for (int i = 0; i < 100; ++i) {
    ++sent[fair.pick(0b11, all_of(65))];
  }
  REQUIRE(sent[0] == 50);
}

TEST_CASE("strict queues go first, the highest first, and pauses hold them", "[transport]") {
  Sizes quanta{};
  quanta.fill(10'000);
  PriorityScheduler scheduler(0b1100'0000, quanta);
  const Sizes heads{100, 0, 0, 4000, 0, 0, 84, 84};
  REQUIRE(scheduler.pick(heads, 0) == 7);
  REQUIRE(scheduler.pick(heads, 0b1000'0000) == 6);
  REQUIRE(scheduler.pick(heads, 0b1100'1000) == 0);
  REQUIRE(scheduler.pick(heads, 0xFF) == PriorityScheduler::kNone);
  REQUIRE(scheduler.pick({}, 0) == PriorityScheduler::kNone);
}

TEST_CASE("weighted queues share the bytes by their quanta, whatever their packets",
          "[transport]") {
  Sizes quanta{};
  quanta.fill(1);
  quanta[3] = 10'000;
  quanta[4] = 30'000;
  PriorityScheduler scheduler(0, quanta);
  Sizes heads{};
  heads[3] = 4178;
  heads[4] = 300;
  std::array<std::int64_t, 8> sent{};
  for (int i = 0; i < 20'000; ++i) {
    const auto queue = static_cast<std::size_t>(scheduler.pick(heads, 0));
    sent[queue] += heads[queue];
  }
  const double ratio = static_cast<double>(sent[4]) / static_cast<double>(sent[3]);
  REQUIRE(ratio == Approx(3.0).epsilon(0.01));
}

TEST_CASE("a quantum below a packet only delays it", "[transport]") {
  Sizes quanta{};
  quanta.fill(100);
  PriorityScheduler scheduler(0, quanta);
  Sizes heads{};
  heads[2] = 4178;
  REQUIRE(scheduler.pick(heads, 0) == 2);
}

}  // namespace trainyard
