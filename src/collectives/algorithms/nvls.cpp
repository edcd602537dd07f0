// SPDX-License-Identifier: Apache-2.0
// NVLS: the NVSwitch adds up and multicasts (NVLink SHARP). All ranks are on one switch, which is
// the schedule's only relay.
//
// The traffic is that of NCCL's kernel (src/device/all_reduce.h, RunWorkColl of NVLS), which knows
// two instructions. multimem.ld_reduce makes the switch fetch the same address from every GPU, that
// of the caller among them, and hand the caller the sum; multimem.st makes it write to every GPU.
// Every rank is the head of one block of the data. For each piece, of s bytes:
//   up    every rank sends the whole piece; the switch adds up and gives each head its block;
//   down  each head sends its block; the switch sends the whole piece to every rank.
// all_reduce is up, then down; reduce_scatter and all_gather are one of the two; broadcast and
// reduce as well, with the root as the head of everything. A port carries, of S bytes in all:
//   all_reduce      up S + S/n     down S/n + S
//   reduce_scatter  up S           down S/n
//   all_gather      up S/n         down S
//   broadcast       up S at the root alone, down S everywhere; reduce the reverse.
// A multicast to n ports is n messages, one for each of them; a block on its way from all GPUs to
// one head is a part of the piece's messages. Commands, answers and the counters by which the GPUs
// wait for one another cost nothing.
//
// On an idle switch, with a and b the latency to the switch and from it, s = S/P, U = s/B, u = U/n:
//   reduce_scatter, all_gather  P U + u + a + b
//   broadcast, reduce           (P + 1) U + a + b
//   all_reduce                  P = 1: 2 (U + u + a + b)
//                               P > 2: (P + 1) U + (P + 3) u + 2 (a + b), if U >= 3 u + a + b:
//                               every port is shared by one message of each kind at a time.
//
// NVLS inside, trees between: all_reduce over several NVSwitches that add up and multicast.
//
// A node is the ranks of one NVSwitch, its relay. Let k be the least number of ranks of a node; the
// first k of every node are its heads, and head h of all nodes has the h-th part of a piece. For
// each piece:
//   in      every rank sends the whole piece to its switch, which gives each head the sum of its
//           part (multimem.ld_reduce, as above);
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

// NVLS is the case of one node.
class NvlsBuilder {
 public:
  // `first` has the first rank of each node, then the number of ranks.
  NvlsBuilder(Operation operation, RankId root, std::vector<std::uint32_t> first,
              std::uint32_t heads, PiecewiseBuilder& builder)
      : first_(std::move(first)),
        first_head_(row_of(operation).has_root ? root.value() : 0),
        heads_(heads),
        adds_up_(operation != Operation::AllGather && operation != Operation::Broadcast),
        multicasts_(operation != Operation::ReduceScatter && operation != Operation::Reduce),
        builder_(builder) {}

  // `first_chunk` is that of head 0.
  void add_channel(std::uint32_t channel, std::uint32_t first_chunk) {
    first_chunk_ = first_chunk;
    up_.assign(nodes() * heads_, {});
    down_.assign(nodes() * heads_, {});
    roots_.clear();
    for (std::uint32_t node = 0; node < nodes() && adds_up_; ++node) {
      add_up(node);
    }
    for (std::uint32_t head = 0; head < heads_; ++head) {
      add_tree(head, double_tree_parents(nodes(), channel));
    }
    for (std::uint32_t node = 0; node < nodes() && multicasts_; ++node) {
      add_down(node);
    }
    for (std::uint32_t index = 0; index < up_.size(); ++index) {
      const RankId rank = head_rank(index / heads_, index % heads_);
      builder_.add_lane(rank, std::move(up_[index]));
      if (nodes() > 1) {
        builder_.add_lane(rank, std::move(down_[index]));
      }
    }
  }

 private:
  [[nodiscard]] std::uint32_t nodes() const {
    return static_cast<std::uint32_t>(first_.size() - 1);
  }
  [[nodiscard]] RankId head_rank(std::uint32_t node, std::uint32_t head) const {
    return RankId(first_[node] + first_head_ + head);
  }
  [[nodiscard]] RankId relay(std::uint32_t node) const { return RankId(first_.back() + node); }
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

  // From every rank to the switch; the sums to the heads.
  void add_up(std::uint32_t node) {
    std::vector<Step> adding;
    for (std::uint32_t rank = first_[node]; rank < first_[node + 1]; ++rank) {
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
    roots_.push_back(root);
    std::vector<std::uint32_t> up_edges(nodes());
    std::vector<std::uint32_t> down_edges(nodes());
    const auto for_each_child = [&](const auto& visit) {
      for (std::uint32_t node = 0; node < nodes(); ++node) {
        if (node != root) {
          visit(node, parents[node]);
        }
      }
    };
    const auto add = [&](std::vector<Step>& steps, StepKind kind, std::uint32_t edge) {
      steps.push_back({.kind = kind, .connection = edge, .chunks = part(head)});
    };
    // All that a node receives from its children comes before what it sends up.
    for_each_child([&](std::uint32_t node, std::uint32_t parent) {
      up_edges[node] = builder_.connect(head_rank(node, head), head_rank(parent, head));
      add(up(parent, head), StepKind::Reduce, up_edges[node]);
    });
    for_each_child([&](std::uint32_t node, std::uint32_t parent) {
      add(up(node, head), StepKind::Send, up_edges[node]);
      down_edges[node] = builder_.connect(head_rank(parent, head), head_rank(node, head));
      add(down(node, head), StepKind::Receive, down_edges[node]);
    });
    for_each_child([&](std::uint32_t node, std::uint32_t parent) {
      add(parent == root ? up(root, head) : down(parent, head), StepKind::Send, down_edges[node]);
    });
  }

  // From the heads to the switch; everything to every rank.
  void add_down(std::uint32_t node) {
    std::vector<Step> sending;
    for (std::uint32_t head = 0; head < heads_; ++head) {
      const std::uint32_t store = builder_.connect(head_rank(node, head), relay(node));
      auto& steps = roots_[head] == node ? up(node, head) : down(node, head);
      steps.push_back({.kind = StepKind::Send, .connection = store, .chunks = part(head)});
      sending.push_back({.kind = StepKind::Receive, .connection = store, .chunks = part(head)});
    }
    for (std::uint32_t rank = first_[node]; rank < first_[node + 1]; ++rank) {
      const std::uint32_t copy = builder_.connect(relay(node), RankId(rank));
      sending.push_back({.kind = StepKind::Send, .connection = copy, .chunks = whole()});
      builder_.add_lane(RankId(rank),
                        {{.kind = StepKind::Receive, .connection = copy, .chunks = whole()}});
    }
    builder_.add_lane(relay(node), std::move(sending));
  }

  std::vector<std::uint32_t> first_;
  std::uint32_t first_head_;  // Counted from the first rank of its node.
  std::uint32_t heads_;       // In each node.
  bool adds_up_;
  bool multicasts_;
  PiecewiseBuilder& builder_;
  std::uint32_t first_chunk_ = 0;
  std::vector<std::vector<Step>> up_;    // Steps of each node and head.
  std::vector<std::vector<Step>> down_;  // The same; empty at the root, which turns around.
  std::vector<std::uint32_t> roots_;     // Root of each head's tree.
};

std::unique_ptr<Schedule> build_nvls(std::string_view name, Operation operation,
                                     const ScheduleOptions& options,
                                     const std::vector<std::uint32_t>& first_ranks,
                                     std::uint32_t heads) {
  const auto channels = static_cast<std::uint32_t>(options.layout.channels());
  PiecewiseBuilder builder({.operation = operation,
                            .algorithm = std::string(name),
                            .ranks = options.layout.ranks(),
                            .relays = static_cast<int>(first_ranks.size()) - 1,
                            .channels = options.layout.channels(),
                            .root = options.root},
                           static_cast<std::uint32_t>(options.pieces), channels * heads);
  NvlsBuilder nvls(operation, options.root, first_ranks, heads, builder);
  // A single rank has nobody to exchange with.
  for (std::uint32_t channel = 0; channel < channels && options.layout.ranks() > 1; ++channel) {
    nvls.add_channel(channel, channel * heads);
  }
  return std::move(builder).build();
}

}  // namespace

constexpr AlgorithmRow kNvls{
    .name = "nvls",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                   Operation::Broadcast, Operation::Reduce},
    .build =
        [](Operation operation, const ScheduleOptions& options) {
          const std::uint32_t ranks = rank_count(options);
          return build_nvls("nvls", operation, options, {0, ranks},
                            row_of(operation).has_root ? 1 : ranks);
        },
    .need = ClusterNeed::OneReducingSwitch,
    .stages = [](Operation operation, const RankLayout& /*layout*/) -> std::int64_t {
      return operation == Operation::AllReduce ? 2 : 1;  // To the switch and back.
    }};

constexpr AlgorithmRow kNvlsTree{
    .name = "nvls-tree",
    .operations = {Operation::AllReduce},
    .build =
        [](Operation operation, const ScheduleOptions& options) {
          return build_nvls("nvls-tree", operation, options, options.layout.first_ranks(),
                            static_cast<std::uint32_t>(options.layout.min_ranks_per_node()));
        },
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
