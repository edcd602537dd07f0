// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/placement/grid_order.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace trainyard {
namespace {

std::vector<int> coordinates(int position, const std::vector<int>& dimensions) {
  std::vector<int> all;
  for (const int size : dimensions) {
    all.push_back(position % size);
    position /= size;
  }
  return all;
}

bool are_neighbours(int a, int b, const std::vector<int>& dimensions,
                    const std::vector<bool>& wraps) {
  const std::vector<int> from = coordinates(a, dimensions);
  const std::vector<int> to = coordinates(b, dimensions);
  int steps = 0;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const int apart = std::abs(from[i] - to[i]);
    steps += wraps[i] ? std::min(apart, dimensions[i] - apart) : apart;
  }
  return steps == 1;
}

// Whether the grid has a Hamiltonian cycle: see grid_order.h.
bool has_cycle(const std::vector<int>& dimensions, const std::vector<bool>& wraps) {
  int longer = 0;
  bool any_even = false;
  bool any_wraps = false;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    longer += dimensions[i] > 1 ? 1 : 0;
    any_even = any_even || dimensions[i] % 2 == 0;
    any_wraps = any_wraps || (wraps[i] && dimensions[i] > 1);
  }
  const int all = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
  return all <= 2 || any_wraps || (longer > 1 && any_even);
}

void require_order(const std::vector<int>& dimensions, const std::vector<bool>& wraps) {
  const GridOrder order = grid_order(dimensions, wraps);
  const int all = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
  std::vector<int> sorted = order.positions;
  std::ranges::sort(sorted);
  std::vector<int> natural(static_cast<std::size_t>(all));
  std::iota(natural.begin(), natural.end(), 0);
  REQUIRE(sorted == natural);
  REQUIRE(order.positions[0] == 0);
  REQUIRE(order.closed == has_cycle(dimensions, wraps));
  const std::size_t steps = order.positions.size() - (order.closed && all > 1 ? 0 : 1);
  for (std::size_t i = 0; i < steps; ++i) {
    REQUIRE(are_neighbours(order.positions[i], order.positions[(i + 1) % order.positions.size()],
                           dimensions, wraps));
  }
}

TEST_CASE("every step in a grid goes to a neighbour, and it closes where it can") {
  for (int x = 1; x <= 6; ++x) {
    for (int y = 1; y <= 6; ++y) {
      for (int z = 1; z <= 5; ++z) {
        for (unsigned mask = 0; mask < 8; ++mask) {
          const std::vector<bool> wraps{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
          INFO(x << " x " << y << " x " << z << ", wraps " << mask);
          require_order({x, y, z}, wraps);
        }
      }
    }
  }
}

TEST_CASE("grids of one, two, four and no dimensions") {
  require_order({7}, {true});
  require_order({7}, {false});
  require_order({5, 4}, {false, false});
  require_order({3, 3, 3, 3}, {false, false, false, true});
  require_order({3, 1, 3, 5}, {false, false, false, false});
  require_order({}, {});
}

TEST_CASE("a mesh of three by two is walked around") {
  const GridOrder order = grid_order({3, 2}, {false, false});
  REQUIRE(order.closed);
  REQUIRE(order.positions == std::vector<int>{0, 1, 2, 5, 4, 3});
}

}  // namespace
}  // namespace trainyard
