// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_repetition.h"

#include <algorithm>
#include <vector>

namespace trainyard {

// The Z function (Gusfield, "Algorithms on strings, trees, and sequences", 1997, section 1.3) of
// the marks from the last one backwards: length[p] of them are the same p marks earlier. Times are
// compared as the distance to the mark before.
std::optional<Picoseconds> period_of(std::span<const Mark> marks, std::size_t least_repeated) {
  if (marks.size() < 3) {
    return std::nullopt;
  }
  const std::size_t count = marks.size() - 1;  // The first one has no distance.
  const auto are_same = [&](std::size_t a, std::size_t b) {
    const Mark* const one = &marks[count - a];
    const Mark* const other = &marks[count - b];
    return one->key == other->key && one->time - one[-1].time == other->time - other[-1].time;
  };
  std::vector<std::size_t> length(count, 0);
  std::size_t begin = 0;  // Known to be the same as the first ones: [begin, end).
  std::size_t end = 0;
  for (std::size_t p = 1; p < count; ++p) {
    std::size_t same = p < end ? std::min(end - p, length[p - begin]) : 0;
    while (p + same < count && are_same(same, p + same)) {
      ++same;
    }
    length[p] = same;
    if (p + same > end) {
      begin = p;
      end = p + same;
    }
    const Picoseconds period = marks[count].time - marks[count - p].time;
    if (same >= std::max(p, least_repeated) && period > 0) {
      return period;
    }
  }
  return std::nullopt;
}

}  // namespace trainyard
