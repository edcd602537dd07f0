// SPDX-License-Identifier: Apache-2.0
// Trees: few steps, for small messages and many ranks; two trees carry full bandwidth together.
//
// Between nodes (or between all ranks of a single node, unless it is a mesh) the tree is binary, on
// numbers 0 .. n-1 with root 0: with b the lowest bit set in v, the parent of v is v with b cleared
// and 2b set, or, where that is not below n, v with b cleared alone. Odd numbers are leaves. The
// second tree mirrors the first (v becomes n-1-v) for even n and shifts it by one for odd n, so
// that the leaves of one are the inner nodes of the other, but for one at most; even channels use
// the first, odd ones the second. Inside a node a chain leads from the first rank of the channel's
// order, the one in the binary tree, through the others.
//
// all_reduce reduces up and broadcasts down, piece by piece; going up and going down are two lanes
// of a rank, so both directions are busy at once. The root does both in one lane. broadcast and
// reduce are one half each; they use the first tree, rotated so that the root of the operation is
// its root.
//
// Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35 (2009); the numbering is that of NCCL (src/graph/trees.cc, ncclGetDtree).
#include <algorithm>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

// Parents in the first tree on n numbers.
std::vector<std::uint32_t> binary_tree(std::uint32_t n) {
  std::vector<std::uint32_t> parents(n, kNoParent);
  for (std::uint32_t v = 1; v < n; ++v) {
    const std::uint32_t lowest = v & (~v + 1);
    const std::uint32_t cleared = v & ~lowest;
    const std::uint32_t up = cleared | (lowest << 1);
    parents[v] = up < n ? up : cleared;
  }
  return parents;
}

std::vector<std::uint32_t> second_tree(std::uint32_t n) {
  const std::vector<std::uint32_t> first = binary_tree(n);
  std::vector<std::uint32_t> parents(n, kNoParent);
  for (std::uint32_t v = 0; v < n; ++v) {
    const std::uint32_t image = n % 2 == 0 ? n - 1 - v : (v + 1) % n;
    if (first[v] != kNoParent) {
      parents[image] = n % 2 == 0 ? n - 1 - first[v] : (first[v] + 1) % n;
    }
  }
  return parents;
}

// Whether all ranks form one binary tree, without chains.
bool is_flat(const RankLayout& layout) {
  return layout.nodes() == 1 && !layout.chain_in_single_node;
}

struct Tree {
  std::vector<std::uint32_t> parent;                 // One per rank.
  std::vector<std::vector<std::uint32_t>> children;  // One list per rank, ascending.
};

Tree build_tree(Operation operation, const ScheduleOptions& options, int channel) {
  const RankLayout& layout = options.layout;
  const auto nodes = static_cast<std::uint32_t>(layout.nodes());
  const std::vector<std::uint32_t> first_ranks = layout.first_ranks();
  const std::uint32_t all = first_ranks.back();
  const bool rooted = operation != Operation::AllReduce;
  const std::uint32_t root = rooted ? options.root.value() : 0;
  const auto root_node = static_cast<std::uint32_t>(std::ranges::upper_bound(first_ranks, root) -
                                                    first_ranks.begin() - 1);

  // The order of each node, that of the root starting with it.
  const auto ranks_of = [&](std::uint32_t node) {
    std::vector<std::uint32_t> ranks;
    for (const int local : layout.local_order(static_cast<int>(node), channel)) {
      ranks.push_back(first_ranks[node] + static_cast<std::uint32_t>(local));
    }
    if (rooted && node == root_node) {
      std::rotate(ranks.begin(), std::ranges::find(ranks, root), ranks.end());
    }
    return ranks;
  };

  Tree tree;
  tree.parent.assign(all, kNoParent);
  tree.children.resize(all);
  const auto shape = [&](std::uint32_t n) {
    return double_tree_parents(n, rooted ? 0 : static_cast<std::uint32_t>(channel));
  };
  if (is_flat(layout)) {
    const std::vector<std::uint32_t> ranks = ranks_of(0);
    const std::vector<std::uint32_t> parents = shape(all);
    for (std::uint32_t v = 0; v < all; ++v) {
      if (parents[v] != kNoParent) {
        tree.parent[ranks[v]] = ranks[parents[v]];
      }
    }
  } else {
    const std::vector<std::uint32_t> parents = shape(nodes);
    for (std::uint32_t v = 0; v < nodes; ++v) {
      const std::vector<std::uint32_t> ranks = ranks_of((v + root_node) % nodes);
      if (parents[v] != kNoParent) {
        tree.parent[ranks[0]] = ranks_of((parents[v] + root_node) % nodes)[0];
      }
      for (std::size_t i = 1; i < ranks.size(); ++i) {
        tree.parent[ranks[i]] = ranks[i - 1];
      }
    }
  }
  for (std::uint32_t rank = 0; rank < tree.parent.size(); ++rank) {
    if (tree.parent[rank] != kNoParent) {
      tree.children[tree.parent[rank]].push_back(rank);
    }
  }
  return tree;
}

// Lanes: (channel * 2 + direction) * N + rank, direction 0 up, 1 down. Connections: the same
// numbers, up from the rank to its parent, down from its parent to the rank. Chunk channel * pieces
// + piece.
class TreeSchedule final : public ChannelSchedule {
 public:
  TreeSchedule(Operation operation, const ScheduleOptions& options)
      : ChannelSchedule("tree", operation, options,
                        {.chunks = static_cast<std::uint32_t>(options.pieces),
                         .connections = 2 * rank_count(options),
                         .lanes_of_rank = 2}),
        pieces_(static_cast<std::uint32_t>(options.pieces)),
        up_(operation != Operation::Broadcast),
        down_(operation != Operation::Reduce) {
    for (int channel = 0; channel < options.layout.channels(); ++channel) {
      trees_.push_back(build_tree(operation, options, channel));
    }
  }

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return std::uint64_t{pieces_} * steps_per_piece(lane);
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t channel = lane.value() / (2 * ranks());
    const bool downward = lane.value() / ranks() % 2 == 1;
    const Tree& tree = trees_[channel];
    const std::vector<std::uint32_t>& children = tree.children[rank];
    const bool is_root = tree.parent[rank] == kNoParent;
    const std::uint32_t up = channel * 2 * ranks();
    const std::uint32_t down = up + ranks();
    const std::uint32_t per_piece = steps_per_piece(lane);
    const ChunkRange chunks{
        .first = channel * pieces_ + static_cast<std::uint32_t>(index / per_piece), .count = 1};
    auto within = static_cast<std::size_t>(index % per_piece);

    if (downward && !is_root) {
      if (within == 0) {
        return {.kind = StepKind::Receive, .connection = down + rank, .chunks = chunks};
      }
      return {.kind = StepKind::Send, .connection = down + children[within - 1], .chunks = chunks};
    }
    if (up_) {
      if (within < children.size()) {
        return {.kind = StepKind::Reduce, .connection = up + children[within], .chunks = chunks};
      }
      within -= children.size();
    }
    if (!is_root) {
      return {.kind = StepKind::Send, .connection = up + rank, .chunks = chunks};
    }
    return {.kind = StepKind::Send, .connection = down + children[within], .chunks = chunks};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t rank = index % ranks();
    const std::uint32_t parent = trees_[index / (2 * ranks())].parent[rank];
    const std::uint32_t other = parent == kNoParent ? rank : parent;
    return index / ranks() % 2 == 0
               ? ScheduleConnection{.source = RankId(rank), .target = RankId(other)}
               : ScheduleConnection{.source = RankId(other), .target = RankId(rank)};
  }

 private:
  [[nodiscard]] std::uint32_t steps_per_piece(LaneId lane) const {
    const std::uint32_t rank = lane.value() % ranks();
    const Tree& tree = trees_[lane.value() / (2 * ranks())];
    const bool downward = lane.value() / ranks() % 2 == 1;
    const auto children = static_cast<std::uint32_t>(tree.children[rank].size());
    if (tree.parent[rank] == kNoParent) {
      // The root turns around in its upward lane.
      return downward ? 0 : (up_ ? children : 0) + (down_ ? children : 0);
    }
    return (downward ? down_ : up_) ? children + 1 : 0;
  }

  std::uint32_t pieces_;
  bool up_;
  bool down_;
  std::vector<Tree> trees_;  // One per channel.
};

}  // namespace

constexpr AlgorithmRow kTree{
    .name = "tree",
    .operations = {Operation::AllReduce, Operation::Broadcast, Operation::Reduce},
    .build = build_schedule<TreeSchedule>,
    .order = ChannelOrder::Rings,
    .stages = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      return tree_depth(layout);
    }};

std::vector<std::uint32_t> double_tree_parents(std::uint32_t n, std::uint32_t channel) {
  return channel % 2 == 1 ? second_tree(n) : binary_tree(n);
}

int tree_depth(const RankLayout& layout) {
  const bool single = is_flat(layout);
  const std::vector<std::uint32_t> parents =
      binary_tree(static_cast<std::uint32_t>(single ? layout.ranks() : layout.nodes()));
  int depth = 0;
  for (std::uint32_t v = 0; v < parents.size(); ++v) {
    int steps = 0;
    for (std::uint32_t at = v; parents[at] != kNoParent; at = parents[at]) {
      ++steps;
    }
    depth = std::max(depth, steps);
  }
  return depth + (single ? 0 : layout.max_ranks_per_node() - 1);
}

}  // namespace trainyard
