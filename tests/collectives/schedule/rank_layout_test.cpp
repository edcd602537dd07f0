// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/schedule/rank_layout.h"

#include <algorithm>
#include <numeric>

#include "sim/random.h"

namespace trainyard {
namespace {

using Matrix = std::vector<std::vector<int>>;

// NVLinks of the DGX-1 V100, the hybrid cube mesh, by pair of GPUs (nvidia-smi topo -m).
const Matrix kCubeMesh = {
    {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
    {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
    {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
};

Matrix full_mesh(int size, int links) {
  Matrix lanes(static_cast<std::size_t>(size),
               std::vector<int>(static_cast<std::size_t>(size), links));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i][i] = 0;
  }
  return lanes;
}

bool is_permutation_of_all(std::vector<int> order) {
  std::ranges::sort(order);
  std::vector<int> natural(order.size());
  std::iota(natural.begin(), natural.end(), 0);
  return order == natural;
}

// Each ring visits all, starts at 0 and uses links that no other one uses.
void require_disjoint(const Matrix& lanes, const std::vector<std::vector<int>>& rings) {
  Matrix left = lanes;
  for (const std::vector<int>& ring : rings) {
    REQUIRE(ring.size() == lanes.size());
    REQUIRE(ring[0] == 0);
    REQUIRE(is_permutation_of_all(ring));
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const auto from = static_cast<std::size_t>(ring[i]);
      const auto to = static_cast<std::size_t>(ring[(i + 1) % ring.size()]);
      REQUIRE(left[from][to] > 0);
      --left[from][to];
    }
  }
}

TEST_CASE("the cube mesh of the DGX-1 has six directed rings, which use every link") {
  const auto rings = disjoint_rings(kCubeMesh);
  REQUIRE(rings.size() == 6);
  require_disjoint(kCubeMesh, rings);
}

TEST_CASE("four GPUs with four links a pair have twelve rings") {
  const auto rings = disjoint_rings(full_mesh(4, 4));
  REQUIRE(rings.size() == 12);
  require_disjoint(full_mesh(4, 4), rings);
}

TEST_CASE("two GPUs have a ring for each link, and graphs without a cycle none") {
  REQUIRE(disjoint_rings(full_mesh(2, 3)) == std::vector<std::vector<int>>(3, {0, 1}));
  REQUIRE(disjoint_rings({{0, 1, 0}, {1, 0, 1}, {0, 1, 0}}).empty());  // A line.
  REQUIRE(disjoint_rings({{0, 1}, {0, 0}}).empty());                   // One way only.
  REQUIRE(disjoint_rings(full_mesh(3, 0)).empty());
  REQUIRE(disjoint_rings({{0}}).empty());
  REQUIRE(disjoint_rings({}).empty());
}

TEST_CASE("the search for rings ends where there are too many ways to look at all") {
  // Two full meshes of 14, joined by one link: no cycle, and more than 13! ways through the first.
  Matrix lanes(28, std::vector<int>(28, 0));
  for (std::size_t a = 0; a < 28; ++a) {
    for (std::size_t b = 0; b < 28; ++b) {
      lanes[a][b] = a != b && a / 14 == b / 14 ? 1 : 0;
    }
  }
  lanes[3][20] = lanes[20][3] = 1;
  REQUIRE(disjoint_rings(lanes).empty());
}

TEST_CASE("a one-way ring is found once") {
  REQUIRE(disjoint_rings({{0, 0, 1}, {1, 0, 0}, {0, 1, 0}}) ==
          std::vector<std::vector<int>>{{0, 2, 1}});
}

TEST_CASE(
    "rings of random meshes use no link twice, and relabelling does not change their number") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "mesh test");
    const std::size_t size = 3 + random.below(4);
    Matrix lanes(size, std::vector<int>(size, 0));
    for (std::size_t a = 0; a < size; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        lanes[a][b] = lanes[b][a] = static_cast<int>(random.below(3));
      }
    }
    const auto rings = disjoint_rings(lanes);
    require_disjoint(lanes, rings);

    std::vector<std::size_t> labels(size);
    std::iota(labels.begin(), labels.end(), 0);
    for (std::size_t i = size; i-- > 1;) {
      std::swap(labels[i], labels[random.below(i + 1)]);
    }
    Matrix relabelled(size, std::vector<int>(size, 0));
    for (std::size_t a = 0; a < size; ++a) {
      for (std::size_t b = 0; b < size; ++b) {
        relabelled[labels[a]][labels[b]] = lanes[a][b];
      }
    }
    REQUIRE(disjoint_rings(relabelled).size() == rings.size());
  }
}

RankLayout rotated(int nodes, int ranks_per_node, bool alternate) {
  LocalOrders orders;
  for (int channel = 0; channel < ranks_per_node; ++channel) {
    std::vector<int> order(static_cast<std::size_t>(ranks_per_node));
    std::iota(order.begin(), order.end(), 0);
    std::rotate(order.begin(), order.begin() + channel, order.end());
    orders.push_back(order);
  }
  RankLayout layout = even_layout(nodes, orders);
  layout.alternate = alternate;
  return layout;
}

TEST_CASE("the flat layout is one node in natural order") {
  const RankLayout layout = flat_layout(5, 3);
  REQUIRE(layout.ranks() == 5);
  REQUIRE(layout.channels() == 3);
  REQUIRE(layout.ring_order(2) == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("nodes of different kinds have ranks, orders and numbers of their own") {
  const RankLayout layout{
      .kinds = {{{0, 1, 2}, {2, 0, 1}}, {{0}, {0}}}, .node_kinds = {0, 1, 0, 1}, .alternate = true};
  REQUIRE(layout.nodes() == 4);
  REQUIRE(layout.channels() == 2);
  REQUIRE(layout.ranks() == 8);
  REQUIRE(layout.max_ranks_per_node() == 3);
  REQUIRE(layout.first_ranks() == std::vector<std::uint32_t>{0, 3, 4, 7, 8});
  REQUIRE(layout.local_order(2, 1) == std::vector<int>{2, 0, 1});
  REQUIRE(layout.ring_order(0) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(layout.ring_order(1) == std::vector<int>{2, 0, 1, 3, 6, 4, 5, 7});
  RankLayout reversed = layout;
  reversed.node_kinds = {1, 0};
  REQUIRE(reversed.ring_order(0) == std::vector<int>{0, 3, 2, 1});
}

TEST_CASE("ring orders are permutations that visit node after node") {
  for (const bool alternate : {false, true}) {
    for (int nodes = 1; nodes <= 5; ++nodes) {
      const RankLayout layout = rotated(nodes, 4, alternate);
      for (int channel = 0; channel < 4; ++channel) {
        const std::vector<int> order = layout.ring_order(channel);
        REQUIRE(order.size() == static_cast<std::size_t>(4 * nodes));
        REQUIRE(is_permutation_of_all(order));
        for (std::size_t i = 0; i < order.size(); ++i) {
          REQUIRE(order[i] / 4 == static_cast<int>(i / 4));
        }
        REQUIRE(order[0] == channel);
      }
    }
  }
}

TEST_CASE("alternating, a ring crosses every boundary between nodes on one local rank") {
  for (int nodes = 2; nodes <= 7; ++nodes) {
    INFO(nodes << " nodes");
    const RankLayout layout = rotated(nodes, 4, true);
    for (int channel = 0; channel < 4; ++channel) {
      const std::vector<int> order = layout.ring_order(channel);
      int changes = 0;
      for (std::size_t i = 3; i < order.size(); i += 4) {
        const std::size_t next = (i + 1) % order.size();
        const bool same_rail = order[i] % 4 == order[next] % 4;
        changes += same_rail ? 0 : 1;
        REQUIRE((same_rail || next == 0));
      }
      REQUIRE(changes == nodes % 2);  // Only the last hop, and only if the number of nodes is odd.
    }
  }
}

}  // namespace
}  // namespace trainyard
