// SPDX-License-Identifier: Apache-2.0
// Rates between three states, and what queues hold after so many periods at them.
#include "network/packet_parts/packet_settled.h"

#include <limits>
#include <map>

#include "support/catch.h"

namespace trainyard {
namespace {

constexpr std::uint16_t kFull = 4200;

// One connection has sent `sent` packets; the queue of the second of two ports holds `waiting`.
RateState state_at(Picoseconds time, std::uint32_t sent, std::uint32_t waiting) {
  return {.time = time,
          .sends = 1,
          .pending = {0},
          .lines = {{.order = 7, .sequence = sent}},
          .places = {{.packets = sent, .waiting = 1},
                     {.packets = sent - waiting, .waiting = waiting, .deep = {{3, waiting}}}}};
}

Ring<Packet> queue_of(const std::vector<std::uint32_t>& connections) {
  Ring<Packet> queue;
  for (const std::uint32_t connection : connections) {
    queue.push({.connection = connection, .position = 10 * connection, .wire = kFull, .left = 2});
  }
  return queue;
}

std::map<std::uint32_t, std::int64_t> counted(const Ring<Packet>& queue) {
  std::map<std::uint32_t, std::int64_t> counts;
  for (std::uint32_t i = 0; i < queue.size(); ++i) {
    ++counts[queue.at(i).connection];
  }
  return counts;
}

// It takes both ports.
const std::vector<RatePath> kPaths{{.connection = 3, .places = {0, 1}}};

TEST_CASE("rates have settled when both intervals agree, up to a packet and the bound") {
  const RateState first = state_at(0, 1000, 20);
  const RateState second = state_at(50, 1200, 70);
  const auto rates = settled_rates(first, second, state_at(100, 1400, 120), kPaths, 0.01);
  REQUIRE(rates.has_value());
  REQUIRE(rates->period == 100);
  REQUIRE(rates->lines.front().packets == 400);
  REQUIRE(rates->queues.size() == 1);
  REQUIRE(rates->queues.front().place == 1);
  REQUIRE(rates->queues.front().growth == 100);
  REQUIRE(rates->queues.front().passed == 300);
  REQUIRE(rates->queues.front().came.front() == std::pair(std::uint32_t{3}, std::int64_t{400}));
  REQUIRE(rates->error == Approx(1.0 / 300));
  // Of 400 packets two more in the second interval are off by (2 + 1) / 402; four are not settled.
  const auto faster = settled_rates(state_at(0, 1000, 20), state_at(50, 1200, 20),
                                    state_at(100, 1402, 20), kPaths, 0.01);
  REQUIRE(faster.has_value());
  REQUIRE(faster->error == Approx(3.0 / 402));
  REQUIRE(faster->queues.empty());
  REQUIRE(!settled_rates(first, second, state_at(100, 1404, 120), kPaths, 0.01));
  REQUIRE(drift(*rates, *faster) == Approx(2.0 / 402));
  // With few packets nothing is known to one part in a hundred.
  REQUIRE(!settled_rates(state_at(0, 1000, 20), state_at(50, 1040, 20), state_at(100, 1080, 20),
                         kPaths, 0.01));
}

TEST_CASE("a message that begins or is complete is a change") {
  const RateState first = state_at(0, 1000, 20);
  RateState later = state_at(100, 1400, 20);
  REQUIRE(!has_changed(first, later));
  later.pending = {0, 1};
  REQUIRE(has_changed(first, later));
  later = state_at(100, 1400, 20);
  later.lines.front().order = 8;
  REQUIRE(has_changed(first, later));
}

Packet packet_of(std::uint32_t connection) {
  return {.connection = connection, .position = 10 * connection, .left = 2};
}

TEST_CASE("a queue that grows gets packets of those that come, in turns, and those before leave") {
  Ring<Packet> queue = queue_of({3, 3, 3, 3});
  const SettledRates::Queue rates{.place = 0, .passed = 3, .growth = 6, .came = {{1, 6}, {2, 3}}};
  REQUIRE(most_periods(queue, &rates) == std::numeric_limits<std::int64_t>::max());
  const QueueShifts one = shifts_of(queue, rates, 1, kFull);
  REQUIRE(one.at(3).packets == -3);
  REQUIRE(one.at(1).packets == 6);
  REQUIRE(one.at(2).bytes == 3 * kFull);
  // All that waited has left after two periods, with some of what came.
  const QueueShifts shifts = shifts_of(queue, rates, 5, kFull);
  REQUIRE(shifts.at(3).packets == -4);
  shift(queue, rates, 5, kFull, packet_of);
  REQUIRE(queue.size() == 4 + 5 * 6);
  const auto counts = counted(queue);
  REQUIRE(counts.at(1) == shifts.at(1).packets);
  REQUIRE(counts.at(2) == shifts.at(2).packets);
  // Two of any three that came are of the first connection.
  for (std::uint32_t i = 0; i + 2 < queue.size(); i += 3) {
    const std::uint32_t sum =
        queue.at(i).connection + queue.at(i + 1).connection + queue.at(i + 2).connection;
    REQUIRE(sum == 4);
  }
  REQUIRE(queue.at(30).position == 10 * queue.at(30).connection);
  REQUIRE(queue.at(30).wire == kFull);
}

TEST_CASE("a queue drains from its head, and stops before a message ends") {
  std::vector<std::uint32_t> connections;
  for (std::uint32_t i = 0; i < 100; ++i) {
    connections.push_back(i % 2);
  }
  Ring<Packet> queue = queue_of(connections);
  const SettledRates::Queue rates{.place = 0, .passed = 4, .growth = -4};
  const std::int64_t most = most_periods(queue, &rates);
  REQUIRE(most * 4 < 100);
  REQUIRE(most > 0);
  queue.at(50).flags = Packet::kEndsMessage;
  REQUIRE(most_periods(queue, &rates) * 4 < 50);
  REQUIRE(most_periods(queue, nullptr) == 0);
  const QueueShifts shifts = shifts_of(queue, rates, 3, kFull);
  REQUIRE(shifts.at(0).packets == -6);
  REQUIRE(shifts.at(1).bytes == -6 * kFull);
  shift(queue, rates, 3, kFull, packet_of);
  REQUIRE(queue.size() == 88);
  REQUIRE(queue.at(38).has(Packet::kEndsMessage));
}

}  // namespace
}  // namespace trainyard
