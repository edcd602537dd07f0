// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/interval_set.h"

#include <algorithm>

namespace trainyard {

bool contains(std::span<const Interval> set, std::uint32_t member) {
  if (set.size() == 1) {  // The common case, without a branch to predict.
    return member - set[0].first < set[0].end - set[0].first;
  }
  const auto after = std::upper_bound(
      set.begin(), set.end(), member,
      [](std::uint32_t value, const Interval& interval) { return value < interval.first; });
  return after != set.begin() && member < std::prev(after)->end;
}

IntervalSet unite(IntervalSet intervals) {
  std::sort(intervals.begin(), intervals.end());
  IntervalSet result;
  for (const Interval& interval : intervals) {
    if (!result.empty() && interval.first <= result.back().end) {
      result.back().end = std::max(result.back().end, interval.end);
    } else if (interval.first < interval.end) {
      result.push_back(interval);
    }
  }
  return result;
}

IntervalSet intersect(std::span<const Interval> a, std::span<const Interval> b) {
  IntervalSet result;
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() && right != b.end()) {
    const Interval common{std::max(left->first, right->first), std::min(left->end, right->end)};
    if (common.first < common.end) {
      result.push_back(common);
    }
    (left->end < right->end ? left : right) += 1;
  }
  return result;
}

IntervalSet subtract(std::span<const Interval> a, std::span<const Interval> b) {
  IntervalSet result;
  auto hole = b.begin();
  for (Interval rest : a) {
    while (hole != b.end() && hole->end <= rest.first) {
      ++hole;
    }
    for (auto next = hole; next != b.end() && next->first < rest.end; ++next) {
      if (rest.first < next->first) {
        result.push_back({rest.first, next->first});
      }
      rest.first = next->end;
    }
    if (rest.first < rest.end) {
      result.push_back(rest);
    }
  }
  return result;
}

}  // namespace trainyard
