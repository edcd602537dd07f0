// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/trees.h"

#include "sim/check.h"

namespace trainyard::nccl {
namespace {

template <typename Renumber>
TreePlace renumbered(TreePlace place, Renumber renumber) {
  const auto apply = [&](std::optional<int>& position) {
    if (position) {
      position = renumber(*position);
    }
  };
  apply(place.parent);
  apply(place.children[0]);
  apply(place.children[1]);
  return place;
}

}  // namespace

TreePlace binary_tree(int count, int position) {
  CHECK(position >= 0, "a place in a tree is not negative");
  CHECK(position < count, "a place in a tree is one of its places");
  int bit = 1;
  while (position == 0 ? bit < count : (position & bit) == 0) {
    bit *= 2;
  }
  TreePlace place;
  int low = bit / 2;
  if (position != 0) {
    const int cleared = position ^ bit;
    const int up = cleared | (2 * bit);
    place.parent = up < count ? up : cleared;
    place.child_index = position < *place.parent ? 0 : 1;
    if (low != 0) {
      place.children[0] = position - low;
    }
  }
  while (low != 0 && position + low >= count) {
    low /= 2;
  }
  if (low != 0) {
    place.children[1] = position + low;
  }
  return place;
}

DoubleTreePlace double_tree(int count, int position) {
  DoubleTreePlace result;
  result.trees[0] = binary_tree(count, position);
  if (count % 2 == 0) {
    const auto mirror = [count](int other) { return count - 1 - other; };
    result.trees[1] = renumbered(binary_tree(count, mirror(position)), mirror);
  } else {
    const auto shift = [count](int other) { return (other + 1) % count; };
    result.trees[1] = renumbered(binary_tree(count, (position + count - 1) % count), shift);
  }
  return result;
}

}  // namespace trainyard::nccl
