// SPDX-License-Identifier: Apache-2.0
// SHARP: the switches of the fabric add up and multicast. Relays are switches, numbered by
// AggregationTree.
//
// all_reduce as NCCL's CollNet direct does it (src/device/all_reduce.h). Of k NICs in a server each
// has a share of the data, a head (the rank that uses the NIC) and a tree of switches: a leaf for
// the NICs below it, and one spine where there are several leaves. For each piece:
//   gather up    every rank sends each head of its server that head's share; the head adds up;
//   up           the head sends the sum to its leaf, which adds up what comes from below and sends
//                it to the spine, which does the same with what comes from the leaves;
//   down         the top of the tree sends the sum back the same ways, one message to each;
//   spread       the head sends it to the other ranks of its server.
// A NIC carries S/k up and S/k down, whatever the number of servers; a link between leaf and spine
// as much for each tree that uses it. Inside a server of g GPUs on an NVSwitch the port of a head
// carries (g-1) S/k in and, at another time, out. On idle links, with P = 1 and t the serialisation
// on each kind of link,
//   2 (t_local((g-1) S/k) + a_local) + 2 (t(S/k) + a_leaf) + 2 (t(S/k) + a_spine),
// the last only where there are spines; a is the mean latency of the two directions.
// How many trees a switch can run at once, and credits between switches, are not in the model.
//
// Graham et al., "Scalable hierarchical aggregation protocol (SHArP): a hardware architecture for
// efficient data reduction", COMHPC 2016.
#include <algorithm>
#include <map>

#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/piecewise.h"

namespace trainyard {

namespace {

std::vector<AggregationTree> one_switch(const RankLayout& layout) {
  const std::vector<std::uint32_t> first_ranks = layout.first_ranks();
  std::vector<AggregationTree> trees(static_cast<std::size_t>(layout.max_ranks_per_node()));
  for (std::uint32_t tree = 0; tree < trees.size(); ++tree) {
    for (std::size_t node = 0; node + 1 < first_ranks.size(); ++node) {
      const std::uint32_t first = first_ranks[node];
      trees[tree].members.push_back(
          {.head = RankId(first + tree % (first_ranks[node + 1] - first))});
    }
  }
  return trees;
}

std::uint32_t relays_of(const std::vector<AggregationTree>& trees) {
  std::uint32_t relays = 0;
  for (const AggregationTree& tree : trees) {
    relays = std::max(relays, tree.spine.value_or(0) + 1);
    for (const AggregationTree::Member& member : tree.members) {
      relays = std::max(relays, member.leaf + 1);
    }
  }
  return relays;
}

class SharpBuilder {
 public:
  SharpBuilder(const ScheduleOptions& options, PiecewiseBuilder& builder)
      : first_ranks_(options.layout.first_ranks()), builder_(builder) {}

  // `first` is the chunk of the first tree's share.
  void add_channel(const std::vector<AggregationTree>& trees, std::uint32_t first) {
    scatter_.assign(ranks(), {});
    gather_.assign(ranks(), {});
    for (std::uint32_t index = 0; index < trees.size(); ++index) {
      share_ = {.first = first + index, .count = 1};
      add_tree(trees[index]);
    }
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      builder_.add_lane(RankId(rank), std::move(scatter_[rank]));
      builder_.add_lane(RankId(rank), std::move(gather_[rank]));
    }
  }

 private:
  // The connections to and from one level of a tree, which it hands to the next.
  struct Ends {
    std::uint32_t up;
    std::uint32_t down;
  };

  [[nodiscard]] std::uint32_t ranks() const { return first_ranks_.back(); }
  [[nodiscard]] RankId relay(std::uint32_t index) const { return RankId(ranks() + index); }
  [[nodiscard]] Step step(StepKind kind, std::uint32_t connection) const {
    return {.kind = kind, .connection = connection, .chunks = share_};
  }

  void add_tree(const AggregationTree& tree) {
    std::map<std::uint32_t, std::vector<Ends>> below;  // Ends below each leaf.
    for (std::size_t node = 0; node < tree.members.size(); ++node) {
      below[tree.members[node].leaf].push_back(add_head(node, tree.members[node]));
    }
    if (!tree.spine) {
      CHECK(below.size() == 1, "several leaves without a spine");
      add_top(relay(below.begin()->first), below.begin()->second);
      return;
    }
    std::vector<Ends> leaves;
    for (const auto& [leaf, members] : below) {
      leaves.push_back(add_leaf(tree, leaf, members));
    }
    add_top(relay(*tree.spine), leaves);
  }

  // The head of a node, and its exchange with the other ranks of the node.
  Ends add_head(std::size_t node, const AggregationTree::Member& member) {
    const RankId head = member.head;
    const RankId leaf = relay(member.leaf);
    const Ends ends{.up = builder_.connect(head, leaf, member.turn),
                    .down = builder_.connect(leaf, head, member.turn)};
    std::vector<Step> up;
    std::vector<Step> down{step(StepKind::Receive, ends.down)};
    for (std::uint32_t other = first_ranks_[node]; other < first_ranks_[node + 1]; ++other) {
      if (RankId(other) == head) {
        continue;
      }
      const std::uint32_t to_head = builder_.connect(RankId(other), head);
      scatter_[other].push_back(step(StepKind::Send, to_head));
      up.push_back(step(StepKind::Reduce, to_head));
      const std::uint32_t from_head = builder_.connect(head, RankId(other));
      down.push_back(step(StepKind::Send, from_head));
      gather_[other].push_back(step(StepKind::Receive, from_head));
    }
    up.push_back(step(StepKind::Send, ends.up));
    builder_.add_lane(head, std::move(up));
    builder_.add_lane(head, std::move(down));
    return ends;
  }

  // Receives from all of `below` and adds up.
  [[nodiscard]] std::vector<Step> adding(const std::vector<Ends>& below) const {
    std::vector<Step> steps;
    for (const Ends& ends : below) {
      steps.push_back(step(steps.empty() ? StepKind::Receive : StepKind::Reduce, ends.up));
    }
    return steps;
  }

  Ends add_leaf(const AggregationTree& tree, std::uint32_t index, const std::vector<Ends>& below) {
    const RankId leaf = relay(index);
    const RankId spine = relay(*tree.spine);
    const Ends ends{.up = builder_.connect(leaf, spine, tree.trunk),
                    .down = builder_.connect(spine, leaf, tree.trunk)};
    std::vector<Step> up = adding(below);
    up.push_back(step(StepKind::Send, ends.up));
    std::vector<Step> down{step(StepKind::Receive, ends.down)};
    for (const Ends& member : below) {
      down.push_back(step(StepKind::Send, member.down));
    }
    builder_.add_lane(leaf, std::move(up));
    builder_.add_lane(leaf, std::move(down));
    return ends;
  }

  // The top of a tree turns around.
  void add_top(RankId top, const std::vector<Ends>& below) {
    std::vector<Step> steps = adding(below);
    for (const Ends& member : below) {
      steps.push_back(step(StepKind::Send, member.down));
    }
    builder_.add_lane(top, std::move(steps));
  }

  std::vector<std::uint32_t> first_ranks_;  // First rank of each node, then the number of ranks.
  PiecewiseBuilder& builder_;
  ChunkRange share_;                        // Chunks of the tree that is being added.
  std::vector<std::vector<Step>> scatter_;  // One per rank.
  std::vector<std::vector<Step>> gather_;   // One per rank.
};

std::unique_ptr<Schedule> build_sharp(Operation operation, const ScheduleOptions& options) {
  const std::vector<AggregationTree> trees =
      options.trees.empty() ? one_switch(options.layout) : options.trees;
  for (const AggregationTree& tree : trees) {
    CHECK(tree.members.size() == static_cast<std::size_t>(options.layout.nodes()),
          "a tree has one member for each node");
  }
  const auto channels = static_cast<std::uint32_t>(options.layout.channels());
  const auto shares = static_cast<std::uint32_t>(trees.size());
  PiecewiseBuilder builder({.operation = operation,
                            .algorithm = "sharp",
                            .ranks = options.layout.ranks(),
                            .relays = static_cast<int>(relays_of(trees)),
                            .channels = options.layout.channels(),
                            .root = options.root},
                           static_cast<std::uint32_t>(options.pieces), channels * shares);
  SharpBuilder sharp(options, builder);
  // A single rank has nobody to exchange with.
  for (std::uint32_t channel = 0; channel < channels && options.layout.ranks() > 1; ++channel) {
    sharp.add_channel(trees, channel * shares);
  }
  return std::move(builder).build();
}

}  // namespace

constexpr AlgorithmRow kSharp{
    .name = "sharp",
    .operations = {Operation::AllReduce},
    .build = build_sharp,
    .need = ClusterNeed::ReducingSwitchTrees,
    .stages = [](Operation /*operation*/, const RankLayout& /*layout*/) -> std::int64_t {
      return 4;  // To the heads, to the switches, and back.
    },
    // Both directions of every pair in a server and of its switch.
    .partners = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      return 2 * layout.max_ranks_per_node() + 2;
    }};

}  // namespace trainyard
