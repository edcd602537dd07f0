// SPDX-License-Identifier: Apache-2.0
// NVLS inside, trees between: all_reduce over several NVSwitches that add up and multicast.
//
// A node is the ranks of one NVSwitch, its relay. Let k be the least number of ranks of a node; the
// first k of every node are its heads, and head h of all nodes has the h-th part of a piece. For
// each piece:
//   in      every rank sends the whole piece to its switch, which gives each head the sum of its
//           part (multimem.ld_reduce, as in nvls.cpp);
//   across  the heads of one number reduce up a binary tree over the nodes and broadcast down it;
//           of the two trees (tree.cpp) channels take one in turn;
//   out     every head sends its part to the switch, which sends all parts to every rank.
// Up, down and the switch are lanes of their own, so pieces follow one another through all parts at
// once. A head's NIC carries its part, S/k, once each way for each tree edge at the head: up to
// three times in one tree, once in the other where the head is a leaf. With one piece, M = 2 nodes
// of g ranks, a and b the latency to a switch and from it, c that between heads, t(s) = s/B on all
// links, those of the NICs being others than those of the switches:
//   2 (t(S) + t(S/g) + a + b) + 2 (t(S/g) + c).
// NCCL's NVLS_TREE (src/device/all_reduce.h); the trees are those of Sanders, Speck, Traeff (2009).
#include <algorithm>
#include <bit>

#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/piecewise.h"

namespace trainyard {

namespace {

class NvlsTreeBuilder {
 public:
  NvlsTreeBuilder(const RankLayout& layout, PiecewiseBuilder& builder)
      : first_(layout.first_ranks()), builder_(builder) {}

  // `first_chunk` is that of head 0.
  void add_channel(std::uint32_t channel, std::uint32_t heads, std::uint32_t first_chunk) {
    heads_ = heads;
    first_chunk_ = first_chunk;
    up_.assign(nodes() * heads, {});
    down_.assign(nodes() * heads, {});
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      add_up(node);
    }
    for (std::uint32_t head = 0; head < heads; ++head) {
      add_tree(head, double_tree_parents(nodes(), channel));
    }
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      add_down(node);
    }
    for (std::uint32_t index = 0; index < up_.size(); ++index) {
      builder_.add_lane(head_rank(index / heads, index % heads), std::move(up_[index]));
      builder_.add_lane(head_rank(index / heads, index % heads), std::move(down_[index]));
    }
  }

 private:
  [[nodiscard]] std::uint32_t nodes() const {
    return static_cast<std::uint32_t>(first_.size() - 1);
  }
  [[nodiscard]] std::uint32_t first_rank(std::uint32_t node) const {
    return static_cast<std::uint32_t>(first_[node]);
  }
  [[nodiscard]] RankId head_rank(std::uint32_t node, std::uint32_t head) const {
    return RankId(first_rank(node) + head);
  }
  [[nodiscard]] RankId relay(std::uint32_t node) const {
    return RankId(first_rank(nodes()) + node);
  }
  [[nodiscard]] ChunkRange whole() const { return {.first = first_chunk_, .count = heads_}; }
  [[nodiscard]] ChunkRange part(std::uint32_t head) const {
    return {.first = first_chunk_ + head, .count = 1};
  }
  [[nodiscard]] std::vector<Step>& up(std::uint32_t node, std::uint32_t head) {
    return up_[node * heads_ + head];
  }
  [[nodiscard]] std::vector<Step>& down(std::uint32_t node, std::uint32_t head) {
    return down_[node * heads_ + head];
  }

  void add_up(std::uint32_t node) {
    std::vector<Step> adding;
    for (std::uint32_t rank = first_rank(node); rank < first_rank(node + 1); ++rank) {
      const std::uint32_t data = builder_.connect(RankId(rank), relay(node));
      builder_.add_lane(RankId(rank),
                        {{.kind = StepKind::Send, .connection = data, .chunks = whole()}});
      adding.push_back({.kind = adding.empty() ? StepKind::Receive : StepKind::Reduce,
                        .connection = data,
                        .chunks = whole()});
    }
    for (std::uint32_t head = 0; head < heads_; ++head) {
      const std::uint32_t sum = builder_.connect(relay(node), head_rank(node, head));
      adding.push_back({.kind = StepKind::Send, .connection = sum, .chunks = part(head)});
      up(node, head)
          .push_back({.kind = StepKind::Receive, .connection = sum, .chunks = part(head)});
    }
    builder_.add_lane(relay(node), std::move(adding));
  }

  // The root turns around in its upward lane.
  void add_tree(std::uint32_t head, const std::vector<std::uint32_t>& parents) {
    const auto root =
        static_cast<std::uint32_t>(std::ranges::find(parents, kNoParent) - parents.begin());
    // All that a node receives from its children comes before what it sends up.
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      if (node != root) {
        const std::uint32_t edge =
            builder_.connect(head_rank(node, head), head_rank(parents[node], head));
        up_edges_.push_back(edge);
        up(parents[node], head)
            .push_back({.kind = StepKind::Reduce, .connection = edge, .chunks = part(head)});
      }
    }
    std::size_t next = 0;
    for (std::uint32_t node = 0; node < nodes(); ++node) {
      if (node != root) {
        up(node, head)
            .push_back(
                {.kind = StepKind::Send, .connection = up_edges_[next++], .chunks = part(head)});
        const std::uint32_t edge =
            builder_.connect(head_rank(parents[node], head), head_rank(node, head));
        auto& parent = parents[node] == root ? up(root, head) : down(parents[node], head);
        sends_down_.push_back({.steps = &parent, .edge = edge});
        down(node, head)
            .push_back({.kind = StepKind::Receive, .connection = edge, .chunks = part(head)});
      }
    }
    for (const Edge& each : sends_down_) {
      each.steps->push_back(
          {.kind = StepKind::Send, .connection = each.edge, .chunks = part(head)});
    }
    up_edges_.clear();
    sends_down_.clear();
    roots_.resize(heads_);
    roots_[head] = root;
  }

  void add_down(std::uint32_t node) {
    std::vector<Step> sending;
    for (std::uint32_t head = 0; head < heads_; ++head) {
      const std::uint32_t store = builder_.connect(head_rank(node, head), relay(node));
      auto& steps = roots_[head] == node ? up(node, head) : down(node, head);
      steps.push_back({.kind = StepKind::Send, .connection = store, .chunks = part(head)});
      sending.push_back({.kind = StepKind::Receive, .connection = store, .chunks = part(head)});
    }
    for (std::uint32_t rank = first_rank(node); rank < first_rank(node + 1); ++rank) {
      const std::uint32_t copy = builder_.connect(relay(node), RankId(rank));
      sending.push_back({.kind = StepKind::Send, .connection = copy, .chunks = whole()});
      builder_.add_lane(RankId(rank),
                        {{.kind = StepKind::Receive, .connection = copy, .chunks = whole()}});
    }
    builder_.add_lane(relay(node), std::move(sending));
  }

  struct Edge {
    std::vector<Step>* steps;
    std::uint32_t edge;
  };

  std::vector<int> first_;  // First rank of each node, then the number of ranks.
  PiecewiseBuilder& builder_;
  std::uint32_t heads_ = 0;
  std::uint32_t first_chunk_ = 0;
  std::vector<std::vector<Step>> up_;    // Steps of each node and head.
  std::vector<std::vector<Step>> down_;  // The same; empty at the root, which turns around.
  std::vector<std::uint32_t> roots_;     // Root of each head's tree.
  std::vector<std::uint32_t> up_edges_;
  std::vector<Edge> sends_down_;
};

std::unique_ptr<Schedule> build_nvls_tree(Operation operation, const ScheduleOptions& options) {
  const RankLayout& layout = options.layout;
  const auto channels = static_cast<std::uint32_t>(layout.channels());
  const auto heads = static_cast<std::uint32_t>(layout.min_ranks_per_node());
  PiecewiseBuilder builder({.operation = operation,
                            .algorithm = "nvls-tree",
                            .ranks = layout.ranks(),
                            .relays = layout.nodes(),
                            .channels = layout.channels(),
                            .root = options.root},
                           static_cast<std::uint32_t>(options.pieces), channels * heads);
  NvlsTreeBuilder trees(layout, builder);
  // A single rank has nobody to exchange with.
  for (std::uint32_t channel = 0; channel < channels && layout.ranks() > 1; ++channel) {
    trees.add_channel(channel, heads, channel * heads);
  }
  return std::move(builder).build();
}

}  // namespace

constexpr AlgorithmRow kNvlsTree{
    .name = "nvls-tree",
    .operations = {Operation::AllReduce},
    .build = build_nvls_tree,
    .need = ClusterNeed::ReducingSwitches,
    // To the switch and the heads, up and down a tree, and back.
    .stages = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      return 2 + 2 * std::bit_width(static_cast<unsigned>(layout.nodes() - 1)) + 2;
    },
    // Two each way with the switch, and both directions of an edge.
    .partners = [](Operation /*operation*/, const RankLayout& /*layout*/) -> std::int64_t {
      return 6;
    }};

}  // namespace trainyard
