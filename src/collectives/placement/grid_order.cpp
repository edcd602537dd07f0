// SPDX-License-Identifier: Apache-2.0
// A grid is built up dimension by dimension: what the first ones give is a row, closed or not, and
// the next dimension is a column of such rows. A step along a row and a step along the column both
// go to a neighbour. Let a row have `length` places and the column `count` rows, both 2 or more.
//
// - Even count: from place 0 of the first row a snake through places 1 .. length-1 of all rows,
//   which ends in the last row at place 1; then back along place 0 of all rows. Closed.
// - Odd count, closed rows: the same through all rows but the last, which it reaches at place 1; it
//   runs to place length-1 and over the end of the row to place 0. Closed.
// - Otherwise rows and column change roles, if the column is closed or the length even.
// - Otherwise both are odd and open. With the colours of a chess board a cycle would have as many
//   black places as white ones, which an odd number of places has not: a plain snake, open.
#include "collectives/placement/grid_order.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

using Place = std::pair<std::size_t, std::size_t>;  // In its row, and the row.

std::vector<Place> snake(std::size_t first_place, std::size_t length, std::size_t rows) {
  std::vector<Place> places;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t step = first_place; step < length; ++step) {
      places.emplace_back(row % 2 == 0 ? step : length - 1 + first_place - step, row);
    }
  }
  return places;
}

// The first two cases above.
std::vector<Place> cycle(std::size_t length, std::size_t count) {
  std::vector<Place> places{{0, 0}};
  std::ranges::copy(snake(1, length, count - count % 2), std::back_inserter(places));
  if (count % 2 == 1) {
    for (std::size_t place = 1; place < length; ++place) {
      places.emplace_back(place, count - 1);
    }
  }
  for (std::size_t row = count - 1; row > 0; --row) {
    places.emplace_back(0, row);
  }
  return places;
}

GridOrder extended(const GridOrder& row, std::size_t count, bool wraps) {
  const std::size_t length = row.positions.size();
  const bool closed_column = wraps || count <= 2;
  if (count == 1) {
    return row;
  }
  std::vector<Place> places;
  GridOrder order{.positions = {}, .closed = true};
  if (length == 1) {
    places = snake(0, 1, count);
    order.closed = closed_column;
  } else if (count % 2 == 0 || row.closed) {
    places = cycle(length, count);
  } else if (length % 2 == 0 || closed_column) {
    for (const auto& [place, which] : cycle(count, length)) {
      places.emplace_back(which, place);
    }
  } else {
    places = snake(0, length, count);
    order.closed = false;
  }
  for (const auto& [place, which] : places) {
    order.positions.push_back(static_cast<int>(which * length) + row.positions[place]);
  }
  return order;
}

}  // namespace

GridOrder grid_order(const std::vector<int>& dimensions, const std::vector<bool>& wraps) {
  CHECK(dimensions.size() == wraps.size(), "a dimension without knowing whether it wraps");
  GridOrder order{.positions = {0}, .closed = true};
  for (std::size_t dimension = 0; dimension < dimensions.size(); ++dimension) {
    CHECK(dimensions[dimension] >= 1, "a dimension without a position");
    order = extended(order, static_cast<std::size_t>(dimensions[dimension]), wraps[dimension]);
  }
  return order;
}

}  // namespace trainyard
