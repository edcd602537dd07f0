// SPDX-License-Identifier: Apache-2.0
// The least of an array of times that change one at a time: a tournament tree.
//
// Node i has children 2i and 2i + 1; leaf k is node capacity + k; the root is node 1. A change
// climbs only as far as it alters the winner, which for many equal times is a step or two. All
// entries that hold the least time are found by going down from the root only where it is.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace trainyard {

class EarliestTimes {
 public:
  // Entries from the present number up to `count` start at SimTime::max(), "never".
  void grow(std::size_t count) {
    if (count <= capacity_) {
      return;
    }
    const std::size_t capacity = std::bit_ceil(std::max<std::size_t>(count, 64));
    std::vector<SimTime> tree(2 * capacity, SimTime::max());
    std::copy_n(tree_.begin() + static_cast<std::ptrdiff_t>(capacity_), capacity_,
                tree.begin() + static_cast<std::ptrdiff_t>(capacity));
    for (std::size_t node = capacity - 1; node > 0; --node) {
      tree[node] = std::min(tree[2 * node], tree[2 * node + 1]);
    }
    tree_ = std::move(tree);
    capacity_ = capacity;
  }

  void set(std::uint32_t index, SimTime time) {
    std::size_t node = capacity_ + index;
    tree_[node] = time;
    while (node > 1) {
      node /= 2;
      const SimTime min = std::min(tree_[2 * node], tree_[2 * node + 1]);
      if (tree_[node] == min) {
        return;
      }
      tree_[node] = min;
    }
  }

  [[nodiscard]] SimTime at(std::uint32_t index) const { return tree_[capacity_ + index]; }
  [[nodiscard]] SimTime min() const { return capacity_ == 0 ? SimTime::max() : tree_[1]; }

  // Appends the indices of all entries equal to least(), ascending.
  void collect_least(std::vector<std::uint32_t>& indices) const {
    if (capacity_ > 0) {
      collect(1, tree_[1], indices);
    }
  }

 private:
  void collect(std::size_t node, SimTime time, std::vector<std::uint32_t>& indices) const {
    if (tree_[node] != time) {
      return;
    }
    if (node >= capacity_) {
      indices.push_back(static_cast<std::uint32_t>(node - capacity_));
      return;
    }
    collect(2 * node, time, indices);
    collect(2 * node + 1, time, indices);
  }

  std::vector<SimTime> tree_;
  std::size_t capacity_ = 0;
};

}  // namespace trainyard
