// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/packet_parts/packet_calendar.h"

#include <algorithm>
#include <map>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

// Window by window, and in a window by order of add(): what a multimap keeps.
TEST_CASE("a calendar hands out windows and their items as a sorted list would") {
  RandomStream random(1, "calendar");
  WindowCalendar<std::uint32_t> calendar;
  std::multimap<std::uint64_t, std::uint32_t> naive;
  const auto all = [&] {
    std::vector<std::uint32_t> items;
    for (const auto& [window, item] : naive) {
      items.push_back(item);
    }
    return items;
  };
  std::uint64_t now = 0;
  std::uint32_t added = 0;
  WindowCalendar<std::uint32_t>::Items taken;
  for (int round = 0; round < 5000; ++round) {
    for (std::uint64_t more = random.below(4); more > 0; --more) {
      // Of those that come next, of the last of them and the first beyond, or far away.
      const std::uint64_t reach = random.below(8) == 0 ? 2000 : random.below(2) == 0 ? 258 : 3;
      const std::uint64_t window = now + 1 + random.below(reach);
      calendar.add(window, added);
      naive.emplace(window, added++);
    }
    REQUIRE(calendar.next() == (naive.empty() ? kNeverWindow : naive.begin()->first));
    if (naive.empty()) {
      continue;
    }
    now = calendar.next();
    const auto [first, last] = naive.equal_range(now);
    std::vector<std::uint32_t> expected;
    for (auto due = first; due != last; ++due) {
      expected.push_back(due->second);
    }
    naive.erase(first, last);
    calendar.take(now, taken);
    REQUIRE(std::ranges::equal(taken, expected));
    REQUIRE(calendar.due(now) == 0);
    if (round % 100 == 0) {
      REQUIRE(calendar.items() == all());
    }
    if (random.below(50) == 0) {
      const auto is_meant = [&](std::uint32_t item) { return item % 3 == 0; };
      calendar.erase_if(is_meant);
      std::erase_if(naive, [&](const auto& entry) { return is_meant(entry.second); });
    }
    if (random.below(200) == 0) {
      now += 300 + random.below(300);
      calendar.reset(now);
      naive.clear();
    }
  }
  calendar.reset(7);
  REQUIRE(calendar.next() == kNeverWindow);
  REQUIRE(calendar.items().empty());
  calendar.add(8, 1);
  REQUIRE(calendar.next() == 8);
}

TEST_CASE("windows without work can be taken too, and change nothing") {
  WindowCalendar<std::uint32_t> calendar;
  WindowCalendar<std::uint32_t>::Items taken = {5};
  for (std::uint64_t window = 0; window < 600; ++window) {
    calendar.take(window, taken);
    REQUIRE(taken.empty());
  }
  calendar.add(900, 1);
  calendar.take(700, taken);
  REQUIRE(taken.empty());
  REQUIRE(calendar.next() == 900);
}

}  // namespace
}  // namespace trainyard
