// SPDX-License-Identifier: Apache-2.0
// The radix heap against std::multimap, which keeps equal keys in the order of insertion.
#include "support/catch.h"

#include "sim/event_queue.h"

#include <map>

#include "sim/random.h"

namespace trainyard {
namespace {

Event event_at(SimTime time, std::uint64_t sequence) {
  return {.time = time, .handler = nullptr, .token = sequence * 3, .sequence = sequence};
}

// From the floor itself to far away, with steps of all magnitudes and many ties.
SimTime random_delay(RandomStream& random) {
  switch (random.below(5)) {
    case 0:
      return SimTime();
    case 1:
      return SimTime(static_cast<std::int64_t>(random.below(4)));
    case 2:
      return SimTime(static_cast<std::int64_t>(1000 * random.below(8)));
    case 3:
      return SimTime(std::int64_t{1} << random.below(60));
    default:
      return SimTime(static_cast<std::int64_t>(random.next() >> (4 + random.below(60))));
  }
}

void compare_with_multimap(std::uint64_t seed, int steps) {
  INFO("seed=" << seed);
  RandomStream random(seed, "event queue test");
  EventQueue queue;
  std::multimap<SimTime, std::uint64_t> model;
  SimTime floor;
  std::uint64_t sequence = 0;
  const std::uint64_t pushes_of_ten = 3 + random.below(5);
  for (int step = 0; step < steps; ++step) {
    if (random.below(10) < pushes_of_ten && floor < SimTime(std::int64_t{1} << 61)) {
      const SimTime time = floor + random_delay(random);
      queue.push(event_at(time, sequence));
      model.emplace(time, sequence);
      ++sequence;
    } else {
      SimTime limit = SimTime::max();
      if (random.below(2) == 0) {
        limit = floor + random_delay(random);
      }
      const std::optional<Event> popped = queue.pop(limit);
      const bool expected = !model.empty() && model.begin()->first <= limit;
      REQUIRE(popped.has_value() == expected);
      if (expected) {
        REQUIRE(popped->time == model.begin()->first);
        REQUIRE(popped->sequence == model.begin()->second);
        REQUIRE(popped->token == 3 * popped->sequence);
        floor = popped->time;
        model.erase(model.begin());
      }
    }
    REQUIRE(queue.size() == model.size());
    REQUIRE(queue.empty() == model.empty());
  }
}

TEST_CASE("the event queue gives what a multimap gives") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    compare_with_multimap(seed, 4'000);
  }
}

TEST_CASE("events of equal time come in the order in which they were pushed") {
  EventQueue queue;
  for (std::uint64_t i = 0; i < 100; ++i) {
    queue.push(event_at(nanoseconds(i % 2 == 0 ? 5 : 7), i));
  }
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::optional<Event> event = queue.pop(SimTime::max());
    REQUIRE(event.has_value());
    REQUIRE(event->sequence == (i < 50 ? 2 * i : 2 * (i - 50) + 1));
  }
  REQUIRE(queue.empty());
}

TEST_CASE("an event pushed at the present time comes behind those already due") {
  EventQueue queue;
  queue.push(event_at(nanoseconds(5), 0));
  queue.push(event_at(nanoseconds(5), 1));
  REQUIRE(queue.pop(SimTime::max())->sequence == 0);
  queue.push(event_at(nanoseconds(5), 2));
  REQUIRE(queue.pop(SimTime::max())->sequence == 1);
  REQUIRE(queue.pop(SimTime::max())->sequence == 2);
}

TEST_CASE("a pop that finds nothing up to its limit leaves room before later events") {
  EventQueue queue;
  queue.push(event_at(microseconds(10), 0));
  REQUIRE_FALSE(queue.pop(microseconds(4)).has_value());
  queue.push(event_at(microseconds(1), 1));
  REQUIRE(queue.pop(microseconds(4))->sequence == 1);
  REQUIRE_FALSE(queue.pop(microseconds(4)).has_value());
  REQUIRE(queue.pop(microseconds(10))->sequence == 0);
  REQUIRE_FALSE(queue.pop(SimTime::max()).has_value());
}

TEST_CASE("the first and the last representable time can be scheduled") {
  EventQueue queue;
  queue.push(event_at(SimTime::max(), 0));
  queue.push(event_at(SimTime(), 1));
  REQUIRE(queue.pop(SimTime())->sequence == 1);
  REQUIRE(queue.pop(SimTime::max())->sequence == 0);
}

}  // namespace
}  // namespace trainyard
