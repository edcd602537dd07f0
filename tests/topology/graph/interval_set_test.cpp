// SPDX-License-Identifier: Apache-2.0
// Against a bit for each member.
#include "support/catch.h"

#include "topology/graph/interval_set.h"

#include <bitset>
#include <cstdint>

#include "sim/random.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kMembers = 24;
using Bits = std::bitset<kMembers>;

Bits bits_of(const IntervalSet& set) {
  Bits bits;
  for (std::uint32_t member = 0; member < kMembers; ++member) {
    bits[member] = contains(set, member);
  }
  return bits;
}

IntervalSet random_intervals(RandomStream& random) {
  IntervalSet intervals;
  for (std::uint64_t count = random.below(5); count > 0; --count) {
    const auto first = static_cast<std::uint32_t>(random.below(kMembers));
    const auto length = static_cast<std::uint32_t>(random.below(kMembers - first + 1));
    intervals.push_back({first, first + length});
  }
  return intervals;
}

// Sorted, none empty, a gap between each two.
void require_normal(const IntervalSet& set) {
  for (std::size_t index = 0; index < set.size(); ++index) {
    REQUIRE(set[index].first < set[index].end);
    REQUIRE((index == 0 || set[index - 1].end < set[index].first));
  }
}

TEST_CASE("sets of intervals agree with sets of bits") {
  RandomStream random(1, "intervals");
  for (int round = 0; round < 2000; ++round) {
    const IntervalSet parts = random_intervals(random);
    Bits expected;
    for (const Interval& part : parts) {
      for (std::uint32_t member = part.first; member < part.end; ++member) {
        expected.set(member);
      }
    }
    const IntervalSet a = unite(parts);
    require_normal(a);
    REQUIRE(bits_of(a) == expected);
    const IntervalSet b = unite(random_intervals(random));
    require_normal(intersect(a, b));
    require_normal(subtract(a, b));
    REQUIRE(bits_of(intersect(a, b)) == (bits_of(a) & bits_of(b)));
    REQUIRE(bits_of(subtract(a, b)) == (bits_of(a) & ~bits_of(b)));
  }
}

}  // namespace
}  // namespace trainyard
