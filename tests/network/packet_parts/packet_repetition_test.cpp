// SPDX-License-Identifier: Apache-2.0
// The period of marks against one that tries every period, and on rows whose period is known.
#include "network/packet_parts/packet_repetition.h"

#include <algorithm>
#include <vector>

#include "sim/random.h"
#include "support/catch.h"

namespace trainyard {
namespace {

// Tries every distance, mark by mark.
std::optional<Picoseconds> naive_period(const std::vector<Mark>& marks, std::size_t least) {
  const std::size_t count = marks.size();
  for (std::size_t by = 1; by < count; ++by) {
    const Picoseconds period = marks.back().time - marks[count - 1 - by].time;
    std::size_t same = 0;
    for (std::size_t i = count - 1; i >= by + 1; --i) {
      const Mark& one = marks[i];
      const Mark& other = marks[i - by];
      const Picoseconds distance = one.time - marks[i - 1].time;
      if (one.key != other.key || distance != other.time - marks[i - by - 1].time) {
        break;
      }
      ++same;
    }
    if (period > 0 && same >= std::max(by, least)) {
      return period;
    }
  }
  return std::nullopt;
}

TEST_CASE("the period of drawn marks is the one that trying all of them finds") {
  RandomStream random(1, "repetition");
  std::size_t found = 0;
  for (int i = 0; i < 2'000; ++i) {
    std::vector<Mark> marks;
    Picoseconds time = 0;
    const auto draw = [&] {
      time += static_cast<Picoseconds>(random.below(2));
      marks.push_back({.time = time, .key = random.below(2)});
    };
    for (std::uint64_t lead = random.below(6); lead > 0; --lead) {
      draw();
    }
    const std::size_t first = marks.size();
    for (std::uint64_t length = 1 + random.below(6); length > 0; --length) {
      draw();
    }
    const std::size_t pattern = marks.size() - first;
    const Picoseconds period = time - marks[first].time + 1;
    for (std::uint64_t left = random.below(4 * pattern); left > 0; --left) {
      const Mark& before = marks[marks.size() - pattern];
      marks.push_back({.time = before.time + period, .key = before.key});
    }
    const std::size_t least = random.below(8);
    const auto expected = naive_period(marks, least);
    const auto actual = period_of(marks, least);
    REQUIRE(actual == expected);
    found += expected ? 1 : 0;
  }
  REQUIRE(found > 500);
}

TEST_CASE("marks that do not repeat twice, or not long enough, have no period") {
  const std::vector<Mark> once = {{0, 1}, {3, 2}, {5, 3}, {9, 1}, {12, 2}};
  REQUIRE_FALSE(period_of(once, 0));
  std::vector<Mark> thrice = once;
  thrice.push_back({14, 3});
  thrice.push_back({18, 1});
  REQUIRE(period_of(thrice, 0) == 9);
  REQUIRE_FALSE(period_of(thrice, 4));
  REQUIRE_FALSE(period_of({}, 0));
}

}  // namespace
}  // namespace trainyard
