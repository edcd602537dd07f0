// SPDX-License-Identifier: Apache-2.0
// alltoall in two hops: inside the server to the rank on the target's rail, then along the rail.
//
// Rank s of a server of g ranks sends each rank i of its server, in one message, all that goes to
// the ranks l of any server with l mod g = i. Rank i, when it has the messages of its server, sends
// each such rank of the other servers, in one message, what all g ranks have for it. Messages
// between servers are g times fewer and g times as large as in a direct exchange, and stay on one
// rail. This is what PXN does for alltoall (NVIDIA, "Doubling all2all performance with NVIDIA
// Collective Communication Library 2.12", 2022). With M servers of g ranks each, N = gM, on idle
// links of latency a and bandwidth B:
//   a + t((g-1) M S/N) + a + t((M-1) g S/N), without the second half on one server.
#include <algorithm>
#include <map>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

// The ranks of the cluster as a server of so many ranks sorts them: class i holds the ranks whose
// number in their server is i modulo that, ascending.
struct Classes {
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> first;  // Where each class begins, then where the last ends.
  std::vector<std::uint32_t> place;  // Where each rank is in `order`.
};

// Chunk (channel * N + source) * N + target. Entries of a channel: source * N + p is the block for
// the p-th rank in the order of the source's server; N^2 + target * N + source is that block. Lane
// channel * N + rank. Connections of a channel: first hop rank * G + i, G the most ranks of a
// server; second hop N * G + rank * H + the number of the target in its class, H the largest class.
class TwoHop final : public ChannelSchedule {
 public:
  TwoHop(Operation operation, const ScheduleOptions& options)
      : TwoHop(operation, options, classes_of(options.layout)) {}

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    const Here here = here_of(lane.value() % ranks());
    // A server has one rank in each of its own classes, to which it need not send.
    return std::uint64_t{2} * (here.locals - 1) + class_size(here) - 1 + nodes() - 1;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t channel = lane.value() / ranks();
    const Here here = here_of(lane.value() % ranks());
    Step step = step_of(here, static_cast<std::uint32_t>(index));
    step.connection += channel * ranks() * (max_locals_ + largest_class_);
    step.chunks.first += channel * 2 * ranks() * ranks();
    return step;
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t within = index % (ranks() * (max_locals_ + largest_class_));
    if (within < ranks() * max_locals_) {
      const std::uint32_t rank = within / max_locals_;
      const Here here = here_of(rank);
      const std::uint32_t local = std::min(within % max_locals_, here.locals - 1);
      return {.source = RankId(rank), .target = RankId(rank - here.local + local)};
    }
    const std::uint32_t of_second = within - ranks() * max_locals_;
    const Here here = here_of(of_second / largest_class_);
    const Classes& classes = *here.classes;
    const std::uint32_t number = std::min(of_second % largest_class_, class_size(here) - 1);
    return {.source = RankId(here.rank),
            .target = RankId(classes.order[classes.first[here.local] + number])};
  }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    const std::uint32_t blocks = ranks() * ranks();
    const std::uint32_t channel = entry / (2 * blocks);
    const std::uint32_t within = entry % (2 * blocks);
    const std::uint32_t row = within % blocks / ranks();
    const std::uint32_t column = within % ranks();
    const std::uint32_t source = within < blocks ? row : column;
    const std::uint32_t target = within < blocks ? here_of(row).classes->order[column] : row;
    return (channel * ranks() + source) * ranks() + target;
  }

 private:
  using ClassesBySize = std::map<std::uint32_t, Classes>;  // Keyed by the ranks of a server.

  struct Here {
    std::uint32_t rank;
    std::uint32_t node;
    std::uint32_t local;
    std::uint32_t locals;
    const Classes* classes;
  };

  TwoHop(Operation operation, const ScheduleOptions& options, ClassesBySize classes)
      : ChannelSchedule(
            "two-hop", operation, options,
            {.chunks = rank_count(options) * rank_count(options),
             .connections = rank_count(options) * (max_locals(options) + largest(classes)),
             .entries = 2 * rank_count(options) * rank_count(options)}),
        max_locals_(max_locals(options)),
        largest_class_(largest(classes)),
        classes_(std::move(classes)),
        first_(options.layout.first_ranks()) {
    for (std::uint32_t node = 0; node + 1 < first_.size(); ++node) {
      node_.insert(node_.end(), first_[node + 1] - first_[node], node);
    }
  }

  static ClassesBySize classes_of(const RankLayout& layout) {
    const std::vector<std::uint32_t> first = layout.first_ranks();
    ClassesBySize all;
    for (std::size_t node = 0; node + 1 < first.size(); ++node) {
      all.try_emplace(first[node + 1] - first[node]);
    }
    for (auto& [locals, classes] : all) {
      classes.place.resize(first.back());
      for (std::uint32_t number = 0; number < locals; ++number) {
        classes.first.push_back(static_cast<std::uint32_t>(classes.order.size()));
        for (std::size_t node = 0; node + 1 < first.size(); ++node) {
          for (std::uint32_t rank = first[node] + number; rank < first[node + 1]; rank += locals) {
            classes.place[rank] = static_cast<std::uint32_t>(classes.order.size());
            classes.order.push_back(rank);
          }
        }
      }
      classes.first.push_back(static_cast<std::uint32_t>(classes.order.size()));
    }
    return all;
  }
  static std::uint32_t largest(const ClassesBySize& all) {
    std::uint32_t max = 0;
    for (const auto& [locals, classes] : all) {
      for (std::uint32_t number = 0; number < locals; ++number) {
        max = std::max(max, classes.first[number + 1] - classes.first[number]);
      }
    }
    return max;
  }
  static std::uint32_t max_locals(const ScheduleOptions& options) {
    return static_cast<std::uint32_t>(options.layout.max_ranks_per_node());
  }

  [[nodiscard]] std::uint32_t nodes() const {
    return static_cast<std::uint32_t>(first_.size() - 1);
  }
  [[nodiscard]] Here here_of(std::uint32_t rank) const {
    const std::uint32_t node = node_[rank];
    const std::uint32_t locals = first_[node + 1] - first_[node];
    return {.rank = rank,
            .node = node,
            .local = rank - first_[node],
            .locals = locals,
            .classes = &classes_.find(locals)->second};
  }
  [[nodiscard]] static std::uint32_t class_size(const Here& here) {
    return here.classes->first[here.local + 1] - here.classes->first[here.local];
  }

  // First hop out and in, then second hop out and in, always those behind oneself first.
  [[nodiscard]] Step step_of(const Here& here, std::uint32_t index) const {
    const std::uint32_t others = here.locals - 1;
    if (index < 2 * others) {
      const bool sends = index < others;
      const std::uint32_t other = (here.local + 1 + index % others) % here.locals;
      return first_hop(sends ? StepKind::Send : StepKind::Receive,
                       sends ? here.rank : here.rank - here.local + other,
                       sends ? other : here.local);
    }
    index -= 2 * others;
    const std::uint32_t targets = class_size(here) - 1;
    if (index < targets) {
      // The own place in the class is left out.
      const std::uint32_t own = here.classes->place[here.rank] - here.classes->first[here.local];
      const std::uint32_t number = (own + 1 + index) % (targets + 1);
      return second_hop(StepKind::Send, here, number);
    }
    const std::uint32_t node = (here.node + nodes() - 1 - (index - targets)) % nodes();
    const Here source = here_of(first_[node] + here.local % (first_[node + 1] - first_[node]));
    return second_hop(StepKind::Receive, source,
                      source.classes->place[here.rank] - source.classes->first[source.local]);
  }
  // From a rank to number `target` of its server.
  [[nodiscard]] Step first_hop(StepKind kind, std::uint32_t rank, std::uint32_t target) const {
    const Classes& classes = *here_of(rank).classes;
    return {.kind = kind,
            .connection = rank * max_locals_ + target,
            .chunks = {.first = rank * ranks() + classes.first[target],
                       .count = classes.first[target + 1] - classes.first[target]}};
  }
  // From a rank to the number-th of its class, with what all of its server have for that.
  [[nodiscard]] Step second_hop(StepKind kind, const Here& from, std::uint32_t number) const {
    const std::uint32_t target = from.classes->order[from.classes->first[from.local] + number];
    return {.kind = kind,
            .connection = ranks() * max_locals_ + from.rank * largest_class_ + number,
            .chunks = {.first = ranks() * ranks() + target * ranks() + first_[from.node],
                       .count = from.locals}};
  }

  std::uint32_t max_locals_;
  std::uint32_t largest_class_;
  ClassesBySize classes_;
  std::vector<std::uint32_t> first_;  // First rank of each server, then the number of ranks.
  std::vector<std::uint32_t> node_;   // Server of each rank.
};

}  // namespace

constexpr AlgorithmRow kTwoHop{
    .name = "two-hop",
    .operations = {Operation::AllToAll},
    .build = build_schedule<TwoHop>,
    .need = ClusterNeed::TwoLevels,
    // Its server, and the ranks of its class in the others.
    .partners = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      const std::int64_t locals = layout.max_ranks_per_node();
      return locals + layout.nodes() * (locals / layout.min_ranks_per_node() + 1);
    },
    .chunks = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      return std::int64_t{2} * layout.ranks();
    }};

}  // namespace trainyard
