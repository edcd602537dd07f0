// SPDX-License-Identifier: Apache-2.0
// Sets of small integers as sorted intervals with gaps between them: short where the members follow
// one another, as the leaves below a switch of a regular fabric do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trainyard {

struct Interval {
  std::uint32_t first = 0;
  std::uint32_t end = 0;  // One past the last member.

  friend auto operator<=>(const Interval&, const Interval&) = default;
};

using IntervalSet = std::vector<Interval>;

[[nodiscard]] bool contains(std::span<const Interval> set, std::uint32_t member);
// The union of any intervals, in any order, overlapping or not.
[[nodiscard]] IntervalSet unite(IntervalSet intervals);
[[nodiscard]] IntervalSet intersect(std::span<const Interval> a, std::span<const Interval> b);
// Returns the numbers that are in `a` and not in `b`.
[[nodiscard]] IntervalSet subtract(std::span<const Interval> a, std::span<const Interval> b);

}  // namespace trainyard
