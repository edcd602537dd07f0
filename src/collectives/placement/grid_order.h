// SPDX-License-Identifier: Apache-2.0
// The order in which a ring visits a grid, a torus or a mesh of any number of dimensions, so that
// every step goes to a neighbour.
#pragma once

#include <vector>

namespace trainyard {

struct GridOrder {
  // Positions, of which the first dimension varies fastest, each once, from 0 on. Each but the
  // first is a neighbour of the one before it.
  std::vector<int> positions;
  // The first is a neighbour of the last: a Hamiltonian cycle.
  bool closed = false;
};

// `wraps` says of each dimension whether its ends are joined. There is a cycle unless no dimension
// wraps and all are odd, or only one dimension is longer than 1 and does not wrap; two positions in
// a row are one, there and back.
[[nodiscard]] GridOrder grid_order(const std::vector<int>& dimensions,
                                   const std::vector<bool>& wraps);

}  // namespace trainyard
