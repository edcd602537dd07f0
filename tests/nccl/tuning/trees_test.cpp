// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <vector>

#include "nccl/tuning/trees.h"

namespace trainyard::nccl {
namespace {

constexpr int kNone = -1;

std::vector<int> parents(int count, std::size_t tree) {
  std::vector<int> result;
  for (int position = 0; position < count; ++position) {
    result.push_back(double_tree(count, position).trees[tree].parent.value_or(kNone));
  }
  return result;
}

int depth_of(const std::vector<int>& parent, int position) {
  int depth = 0;
  // A cycle would not end by itself.
  while (parent[static_cast<std::size_t>(position)] != kNone &&
         depth <= static_cast<int>(parent.size())) {
    position = parent[static_cast<std::size_t>(position)];
    ++depth;
  }
  return depth;
}

int ceil_log2(int count) {
  int bits = 0;
  while ((1 << bits) < count) {
    ++bits;
  }
  return bits;
}

int children_of(const TreePlace& place) {
  return static_cast<int>(place.children[0].has_value()) +
         static_cast<int>(place.children[1].has_value());
}

TEST_CASE("the double tree of 4, 5 and 8 nodes is that of NCCL", "[nccl]") {
  REQUIRE(parents(4, 0) == std::vector<int>{kNone, 2, 0, 2});
  REQUIRE(parents(4, 1) == std::vector<int>{1, 3, 1, kNone});
  REQUIRE(parents(5, 0) == std::vector<int>{kNone, 2, 4, 2, 0});
  REQUIRE(parents(5, 1) == std::vector<int>{1, kNone, 3, 0, 3});
  REQUIRE(parents(8, 0) == std::vector<int>{kNone, 2, 4, 2, 0, 6, 4, 6});
  REQUIRE(parents(8, 1) == std::vector<int>{1, 3, 1, 7, 5, 3, 5, kNone});
}

TEST_CASE("both trees reach every node from one root, in few steps", "[nccl]") {
  for (int count = 1; count <= 200; ++count) {
    for (const std::size_t tree : {std::size_t{0}, std::size_t{1}}) {
      const std::vector<int> parent = parents(count, tree);
      INFO("count " << count << ", tree " << tree);
      REQUIRE(std::count(parent.begin(), parent.end(), kNone) == 1);
      int deepest = 0;
      for (int position = 0; position < count; ++position) {
        deepest = std::max(deepest, depth_of(parent, position));
      }
      REQUIRE(deepest == ceil_log2(count));
    }
  }
}

TEST_CASE("parents and children of a double tree name each other", "[nccl]") {
  for (int count = 1; count <= 200; ++count) {
    for (const std::size_t tree : {std::size_t{0}, std::size_t{1}}) {
      INFO("count " << count << ", tree " << tree);
      int edges = 0;
      for (int position = 0; position < count; ++position) {
        const TreePlace place = double_tree(count, position).trees[tree];
        edges += children_of(place);
        if (place.parent) {
          const TreePlace above = double_tree(count, *place.parent).trees[tree];
          REQUIRE(above.children.at(static_cast<std::size_t>(place.child_index)) == position);
        }
      }
      REQUIRE(edges == count - 1);
    }
  }
}

TEST_CASE("who forwards in one tree is a leaf in the other", "[nccl]") {
  for (int count = 2; count <= 200; ++count) {
    int forward_twice = 0;
    for (int position = 0; position < count; ++position) {
      const DoubleTreePlace place = double_tree(count, position);
      const bool in_both = children_of(place.trees[0]) > 0 && children_of(place.trees[1]) > 0;
      forward_twice += in_both ? 1 : 0;
    }
    INFO("count " << count);
    REQUIRE(forward_twice <= count % 2);
  }
}

}  // namespace
}  // namespace trainyard::nccl
