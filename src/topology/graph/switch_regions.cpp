// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/switch_regions.h"

#include <algorithm>
#include <numeric>

namespace trainyard {

// Union-find, with the least index as the root of each tree.
std::vector<std::uint32_t> switch_regions(std::uint32_t switches, std::span<const SwitchEdge> edges,
                                          const std::function<bool(const SwitchEdge&)>& joins) {
  std::vector<std::uint32_t> joined(switches);
  std::iota(joined.begin(), joined.end(), 0U);
  const auto root = [&](std::uint32_t index) {
    while (joined[index] != index) {
      joined[index] = joined[joined[index]];
      index = joined[index];
    }
    return index;
  };
  for (const SwitchEdge& edge : edges) {
    if (joins(edge)) {
      const std::uint32_t a = root(edge.source);
      const std::uint32_t b = root(edge.target);
      joined[std::max(a, b)] = std::min(a, b);
    }
  }
  for (std::uint32_t index = 0; index < switches; ++index) {
    joined[index] = root(index);
  }
  return joined;
}

}  // namespace trainyard
