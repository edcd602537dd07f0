// SPDX-License-Identifier: Apache-2.0
// Shapes of the trees, and the closed form of a single one.
//
// On N = 2^k ranks the first tree is the root 0 above a perfect binary tree of N-1 numbers: k
// levels, so k-1 steps with two children each, and one step between its top and the root. With one
// channel and one piece, all ranks of a level are always at the same point. Going up, the messages
// of two children share the ingress of their parent, each at half the rate: a level takes
// a + t(2S). So does a level going down, where they share its egress. The top and the root are
// alone: a + t(S). Hence
//     broadcast = reduce = (k-1) (a + t(2S)) + a + t(S),    all_reduce = 2 (the same)
// in the flow engine. To the analytical engine every message is alone, k (a + t(S)); but for
// broadcast the last parents send 2 S on their egress from (k-1) (a + t(S)) on, and the link bound
// (k-1) (a + t(S)) + a + t(2S) is later for k > 1. For the others no link bound is.
#include "support/catch.h"

#include <bit>
#include <set>
#include <vector>

#include "support/collective_run.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kNone = 0xffff'ffff;

// Parents by rank, read off the upward connections of a channel; a root is joined to itself.
std::vector<std::uint32_t> parents_of(const Schedule& schedule, std::uint32_t channel) {
  const auto ranks = static_cast<std::uint32_t>(schedule.shape().ranks);
  std::vector<std::uint32_t> parents(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const ScheduleConnection ends = schedule.connection(channel * 2 * ranks + rank);
    REQUIRE(ends.source == RankId(rank));
    parents[rank] = ends.target == ends.source ? kNone : ends.target.value();
  }
  return parents;
}

int depth_of(const std::vector<std::uint32_t>& parents, std::uint32_t rank) {
  int depth = 0;
  while (parents[rank] != kNone) {
    rank = parents[rank];
    ++depth;
    REQUIRE(depth <= static_cast<int>(parents.size()));
  }
  return depth;
}

TEST_CASE("trees have one root, at most two children a rank and logarithmic depth") {
  for (int ranks = 1; ranks <= 70; ++ranks) {
    INFO(ranks << " ranks");
    const auto schedule = make_flat({.algorithm = &kTree, .ranks = ranks, .channels = 2});
    int deepest = 0;
    for (const std::uint32_t channel : {0U, 1U}) {
      const std::vector<std::uint32_t> parents = parents_of(*schedule, channel);
      std::vector<int> children(parents.size(), 0);
      int roots = 0;
      for (std::uint32_t rank = 0; rank < parents.size(); ++rank) {
        roots += parents[rank] == kNone ? 1 : 0;
        if (parents[rank] != kNone) {
          ++children[parents[rank]];
        }
        deepest = std::max(deepest, depth_of(parents, rank));
      }
      REQUIRE(roots == 1);
      REQUIRE(*std::ranges::max_element(children) <= 2);
    }
    REQUIRE(deepest == tree_depth(flat_layout(ranks, 2)));
    REQUIRE(deepest <= static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))));
  }
}

TEST_CASE("the double tree of 4, 5 and 8 nodes is that of NCCL") {
  using Parents = std::vector<std::uint32_t>;
  REQUIRE(double_tree_parents(4, 0) == Parents{kNone, 2, 0, 2});
  REQUIRE(double_tree_parents(4, 1) == Parents{1, 3, 1, kNone});
  REQUIRE(double_tree_parents(5, 0) == Parents{kNone, 2, 4, 2, 0});
  REQUIRE(double_tree_parents(5, 1) == Parents{1, kNone, 3, 0, 3});
  REQUIRE(double_tree_parents(8, 0) == Parents{kNone, 2, 4, 2, 0, 6, 4, 6});
  REQUIRE(double_tree_parents(8, 1) == Parents{1, 3, 1, 7, 5, 3, 5, kNone});
}

TEST_CASE("the leaves of one tree are inner in the other, but for one at most") {
  for (int ranks = 2; ranks <= 70; ++ranks) {
    INFO(ranks << " ranks");
    const auto schedule = make_flat({.algorithm = &kTree, .ranks = ranks, .channels = 2});
    std::vector<int> times_inner(static_cast<std::size_t>(ranks), 0);
    for (const std::uint32_t channel : {0U, 1U}) {
      std::set<std::uint32_t> inner;
      for (const std::uint32_t parent : parents_of(*schedule, channel)) {
        if (parent != kNone) {
          inner.insert(parent);
        }
      }
      for (const std::uint32_t rank : inner) {
        ++times_inner[rank];
      }
    }
    REQUIRE(std::ranges::count(times_inner, 0) <= 1);
    if (ranks > 2) {
      REQUIRE(std::ranges::count(times_inner, 2) <= 1);
    }
  }
}

TEST_CASE("inside a node the tree is a chain behind the first rank of the channel's order") {
  const RankLayout layout = even_layout(3, {{0, 1, 2, 3}, {2, 3, 0, 1}});
  const auto schedule =
      make_schedule(&kTree, Operation::AllReduce, {.layout = layout, .root = {}, .pieces = 1});
  const std::vector<std::uint32_t> first = parents_of(*schedule, 0);
  REQUIRE(first == std::vector<std::uint32_t>{kNone, 0, 1, 2, 8, 4, 5, 6, 0, 8, 9, 10});
  const std::vector<std::uint32_t> second = parents_of(*schedule, 1);
  REQUIRE(second[7] == 6);
  REQUIRE(second[4] == 7);
  REQUIRE(second[5] == 4);
  REQUIRE(tree_depth(layout) == 5);
}

TEST_CASE("chains are as long as their node, and the root of a broadcast starts its own") {
  const RankLayout layout{.kinds = {{{0, 1}}, {{0}}, {{2, 0, 1}}}, .node_kinds = {0, 1, 2, 1}};
  const auto all =
      make_schedule(&kTree, Operation::AllReduce, {.layout = layout, .root = {}, .pieces = 1});
  // The binary tree on nodes 0 ... 3: 2 below 0, 1 and 3 below 2. First ranks 0, 2, 5, 6.
  REQUIRE(parents_of(*all, 0) == std::vector<std::uint32_t>{kNone, 0, 5, 5, 3, 0, 5});
  const auto broadcast = make_schedule(&kTree, Operation::Broadcast,
                                       {.layout = layout, .root = RankId(4), .pieces = 1});
  // Turned so that node 2 is the root, which begins with its rank 4: 0 below 2, 3 and 1 below 0.
  REQUIRE(parents_of(*broadcast, 0) == std::vector<std::uint32_t>{4, 0, 0, 5, kNone, 4, 0});
  REQUIRE(tree_depth(layout) == 2 + 2);
}

TEST_CASE("where the ranks of a single node are a mesh, the tree is a chain in its order") {
  RankLayout layout = even_layout(1, {{0, 3, 1, 2}, {2, 1, 3, 0}});
  layout.chain_in_single_node = true;
  const auto schedule =
      make_schedule(&kTree, Operation::AllReduce, {.layout = layout, .root = {}, .pieces = 1});
  REQUIRE(parents_of(*schedule, 0) == std::vector<std::uint32_t>{kNone, 3, 1, 0});
  REQUIRE(parents_of(*schedule, 1) == std::vector<std::uint32_t>{3, 2, kNone, 1});
  REQUIRE(tree_depth(layout) == 3);
  const auto broadcast = make_schedule(&kTree, Operation::Broadcast,
                                       {.layout = layout, .root = RankId(1), .pieces = 1});
  REQUIRE(parents_of(*broadcast, 0) == std::vector<std::uint32_t>{2, kNone, 1, 0});
}

TEST_CASE("a single tree on a power of two takes what the levels take") {
  for (const int levels : {1, 2, 3, 4, 5}) {
    const int ranks = 1 << levels;
    for (const std::int64_t size : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1'000'003}}) {
      INFO(ranks << " ranks, " << size << " bytes");
      const SimTime alone = transfer_time(Bytes(size), kIdleBandwidth) + kIdleLatency;
      const SimTime shared = transfer_time(Bytes(2 * size), kIdleBandwidth) + kIdleLatency;
      const SimTime flow = shared * (levels - 1) + alone;
      const SimTime analytical = alone * levels;
      const SimTime analytical_broadcast = alone * (levels - 1) + (levels > 1 ? shared : alone);
      const auto time = [&](Operation operation, Fidelity fidelity, int root) {
        return idle_time({.algorithm = &kTree,
                          .operation = operation,
                          .ranks = ranks,
                          .root = static_cast<std::uint32_t>(root)},
                         Bytes(size), fidelity);
      };
      REQUIRE(time(Operation::AllReduce, Fidelity::Flow, 0) == flow * 2);
      REQUIRE(time(Operation::AllReduce, Fidelity::Analytical, 0) == analytical * 2);
      for (const int root : {0, 1, ranks - 1}) {
        REQUIRE(time(Operation::Broadcast, Fidelity::Flow, root) == flow);
        REQUIRE(time(Operation::Reduce, Fidelity::Flow, root) == flow);
        REQUIRE(time(Operation::Broadcast, Fidelity::Analytical, root) == analytical_broadcast);
        REQUIRE(time(Operation::Reduce, Fidelity::Analytical, root) == analytical);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
