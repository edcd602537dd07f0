// SPDX-License-Identifier: Apache-2.0
// Two levels: inside the servers everybody with everybody, between them only ranks of one column.
//
// Let k be the least number of ranks of a server; the first k of every server are its heads, and
// column c is the c-th head of all servers. Data are in k parts, one for each column:
//   in       every rank sends each head of its server that head's part; the head adds up
//            (reduce_scatter, all_reduce), or has the blocks of its column (all_gather, where ranks
//            beyond k give theirs to head l mod k);
//   across   each column does the operation among its M heads, by halving and doubling if M is a
//            power of two and along a ring otherwise;
//   out      every head sends its part to all ranks of its server (reduce_scatter: to ranks beyond
//            k what is theirs).
// Only 1/k of the data crosses between servers on each head, with its NIC. On idle links of latency
// a and bandwidth B, M servers of g ranks each, M = 2^q, S as in nccl-tests:
//   all_gather, reduce_scatter  a + t((g-1) S/g) + q a + the sum over r < q of t(2^r S/(gM)),
//   all_reduce                  twice that.
// Nothing is cut into pieces: the links inside idle while those between work.
//
// Jia et al., "Highly scalable deep learning training system with mixed-precision: training
// ImageNet in four minutes", arXiv:1807.11205 (hierarchical all_reduce); Cho et al., "BlueConnect:
// decomposing all-reduce for deep learning on heterogeneous network hierarchy", SysML 2019.
#include <bit>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

Algorithm between_nodes(int nodes) {
  return std::has_single_bit(static_cast<unsigned>(nodes)) ? &kHalvingDoubling : &kRing;
}

std::uint32_t min_ranks(const RankLayout& layout) {
  return static_cast<std::uint32_t>(layout.min_ranks_per_node());
}

// Chunks of a channel: for all_reduce one for each column and server, otherwise one for each rank.
// Entries list them by column, then by server in the order of the schedule between servers, then by
// rank: starts_[c * M + p] is the first of the server at place p in column c. Lane channel * N +
// rank. Connections of a channel: from rank r to head c of its server r * k + c; back from the head
// N * k + r * k + c; then those of the columns in turn.
class Hierarchical final : public ChannelSchedule {
 public:
  Hierarchical(Operation operation, const ScheduleOptions& options)
      : Hierarchical(operation, options,
                     make_schedule(between_nodes(options.layout.nodes()), operation,
                                   {.layout = flat_layout(options.layout.nodes(), 1),
                                    .root = RankId(0),
                                    .pieces = 1})) {}

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    const Parts parts = parts_of(lane.value() % ranks());
    return parts.ins + parts.across + parts.outs;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t channel = lane.value() / ranks();
    const Parts parts = parts_of(lane.value() % ranks());
    Step step = index < parts.ins ? step_in(parts, static_cast<std::uint32_t>(index))
                : index < parts.ins + parts.across
                    ? step_across(parts, index - parts.ins)
                    : step_out(parts, static_cast<std::uint32_t>(index - parts.ins - parts.across));
    step.connection += channel * connections_;
    step.chunks.first += channel * chunks_;
    return step;
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t within = index % connections_;
    if (within >= 2 * ranks() * heads_) {
      const std::uint32_t of_columns = within - 2 * ranks() * heads_;
      const std::uint32_t column = of_columns / across_->shape().connections;
      const ScheduleConnection ends =
          across_->connection(of_columns % across_->shape().connections);
      return {.source = RankId(first_[ends.source.value()] + column),
              .target = RankId(first_[ends.target.value()] + column)};
    }
    const std::uint32_t rank = within / heads_ % ranks();
    const std::uint32_t head = first_[node_[rank]] + within % heads_;
    return within < ranks() * heads_
               ? ScheduleConnection{.source = RankId(rank), .target = RankId(head)}
               : ScheduleConnection{.source = RankId(head), .target = RankId(rank)};
  }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    return listing_.empty() ? entry : entry / chunks_ * chunks_ + listing_[entry % chunks_];
  }

 private:
  // How many steps a rank takes in each part, and where it is.
  struct Parts {
    std::uint32_t rank;
    std::uint32_t node;
    std::uint32_t local;
    std::uint32_t locals;  // Ranks of its server.
    std::uint64_t ins = 0;
    std::uint64_t across = 0;
    std::uint64_t outs = 0;
  };

  Hierarchical(Operation operation, const ScheduleOptions& options,
               std::unique_ptr<Schedule> across)
      : ChannelSchedule("hierarchical", operation, options, extent_of(operation, options, *across)),
        operation_(operation),
        heads_(min_ranks(options.layout)),
        across_(std::move(across)),
        chunks_(shape().chunk_count / static_cast<std::uint32_t>(options.layout.channels())),
        connections_(shape().connections / static_cast<std::uint32_t>(options.layout.channels())),
        first_(options.layout.first_ranks()) {
    for (std::uint32_t node = 0; node + 1 < first_.size(); ++node) {
      node_.insert(node_.end(), first_[node + 1] - first_[node], node);
    }
    list_chunks();
  }

  static Extent extent_of(Operation operation, const ScheduleOptions& options,
                          const Schedule& across) {
    const std::uint32_t ranks = rank_count(options);
    const std::uint32_t heads = min_ranks(options.layout);
    const auto nodes = static_cast<std::uint32_t>(options.layout.nodes());
    const bool by_rank = operation != Operation::AllReduce;
    return {.chunks = by_rank ? ranks : heads * nodes,
            .connections = heads * (2 * ranks + across.shape().connections),
            .entries = by_rank ? ranks : 0};
  }

  void list_chunks() {
    places_.resize(nodes());
    for (std::uint32_t place = 0; place < nodes(); ++place) {
      places_[across_->chunk_at(place)] = place;
    }
    for (std::uint32_t column = 0; column < heads_; ++column) {
      for (std::uint32_t place = 0; place < nodes(); ++place) {
        if (operation_ == Operation::AllReduce) {
          starts_.push_back(column * nodes() + place);
          continue;
        }
        const std::uint32_t node = across_->chunk_at(place);
        starts_.push_back(static_cast<std::uint32_t>(listing_.size()));
        for (std::uint32_t rank = first_[node] + column; rank < first_[node + 1]; rank += heads_) {
          listing_.push_back(rank);
        }
      }
    }
    starts_.push_back(chunks_);
  }

  [[nodiscard]] std::uint32_t nodes() const {
    return static_cast<std::uint32_t>(first_.size() - 1);
  }
  [[nodiscard]] bool gathers() const { return operation_ == Operation::AllGather; }
  [[nodiscard]] bool scatters() const { return operation_ == Operation::ReduceScatter; }
  // Returns the entries of the servers at places `place` to `place + count - 1` in a column.
  [[nodiscard]] ChunkRange entries(std::uint32_t column, std::uint32_t place,
                                   std::uint32_t count) const {
    const std::uint32_t first = starts_[column * nodes() + place];
    return {.first = first, .count = starts_[column * nodes() + place + count] - first};
  }
  [[nodiscard]] ChunkRange column(std::uint32_t number) const {
    return entries(number, 0, nodes());
  }
  // The block of a rank, all_gather and reduce_scatter.
  [[nodiscard]] ChunkRange block(const Parts& parts, std::uint32_t local) const {
    return {.first = starts_[local % heads_ * nodes() + places_[parts.node]] + local / heads_,
            .count = 1};
  }
  [[nodiscard]] std::uint32_t to_head(std::uint32_t rank, std::uint32_t head) const {
    return rank * heads_ + head;
  }
  [[nodiscard]] std::uint32_t from_head(std::uint32_t rank, std::uint32_t head) const {
    return (ranks() + rank) * heads_ + head;
  }

  // Ranks beyond the heads that a head represents.
  [[nodiscard]] std::uint32_t wards(const Parts& parts) const {
    return (parts.locals - 1 - parts.local) / heads_;
  }
  [[nodiscard]] Parts parts_of(std::uint32_t rank) const {
    const std::uint32_t node = node_[rank];
    Parts parts{.rank = rank,
                .node = node,
                .local = rank - first_[node],
                .locals = first_[node + 1] - first_[node]};
    const bool is_head = parts.local < heads_;
    // Exchanges with all heads but itself, and as a head with all other ranks.
    const std::uint64_t full =
        heads_ - (is_head ? 1 : 0) + (is_head ? parts.locals - 1 : std::uint64_t{0});
    const std::uint64_t few = is_head ? wards(parts) : 1;
    parts.ins = gathers() ? few : full;
    parts.outs = scatters() ? few : full;
    parts.across = is_head ? across_->step_count(LaneId(node)) : 0;
    return parts;
  }

  // The i-th of the heads, or ranks, of the server beside this one, those behind it first.
  [[nodiscard]] static std::uint32_t other(std::uint32_t local, std::uint32_t count,
                                           std::uint32_t i) {
    return local < count ? (local + 1 + i) % count : (local + i) % count;
  }

  // The block of a rank beyond the heads goes to its head or comes from it.
  [[nodiscard]] Step ward_step(const Parts& parts, std::uint32_t index, bool inwards) const {
    const bool is_head = parts.local < heads_;
    const std::uint32_t ward = parts.local + (is_head ? (index + 1) * heads_ : 0);
    const std::uint32_t rank = parts.rank - parts.local + ward;
    const std::uint32_t head = parts.local % heads_;
    return {.kind = is_head == inwards ? StepKind::Receive : StepKind::Send,
            .connection = inwards ? to_head(rank, head) : from_head(rank, head),
            .chunks = block(parts, ward)};
  }

  [[nodiscard]] Step step_in(const Parts& parts, std::uint32_t index) const {
    if (gathers()) {
      return ward_step(parts, index, true);
    }
    const std::uint32_t sends = heads_ - (parts.local < heads_ ? 1 : 0);
    if (index < sends) {
      const std::uint32_t head = other(parts.local, heads_, index);
      return {
          .kind = StepKind::Send, .connection = to_head(parts.rank, head), .chunks = column(head)};
    }
    const std::uint32_t from = other(parts.local, parts.locals, index - sends);
    return {.kind = StepKind::Reduce,
            .connection = to_head(parts.rank - parts.local + from, parts.local),
            .chunks = column(parts.local)};
  }

  // A step of the column, on its connections and entries.
  [[nodiscard]] Step step_across(const Parts& parts, std::uint64_t index) const {
    Step step = across_->step(LaneId(parts.node), index);
    step.connection += heads_ * 2 * ranks() + parts.local * across_->shape().connections;
    step.chunks = entries(parts.local, step.chunks.first, step.chunks.count);
    return step;
  }

  [[nodiscard]] Step step_out(const Parts& parts, std::uint32_t index) const {
    if (scatters()) {
      return ward_step(parts, index, false);
    }
    const std::uint32_t sends = parts.local < heads_ ? parts.locals - 1 : 0;
    if (index < sends) {
      const std::uint32_t to = other(parts.local, parts.locals, index);
      return {.kind = StepKind::Send,
              .connection = from_head(parts.rank - parts.local + to, parts.local),
              .chunks = column(parts.local)};
    }
    const std::uint32_t head = other(parts.local, heads_, index - sends);
    return {.kind = StepKind::Receive,
            .connection = from_head(parts.rank, head),
            .chunks = column(head)};
  }

  Operation operation_;
  std::uint32_t heads_;                // Heads per server.
  std::unique_ptr<Schedule> across_;   // Schedule of one column: its ranks are servers.
  std::uint32_t chunks_;               // Chunks per channel.
  std::uint32_t connections_;          // Connections per channel.
  std::vector<std::uint32_t> first_;   // First rank of each server, then the number of ranks.
  std::vector<std::uint32_t> node_;    // Server of each rank.
  std::vector<std::uint32_t> places_;  // Place of each server.
  std::vector<std::uint32_t> starts_;
  std::vector<std::uint32_t> listing_;  // Listing of one channel; empty for all_reduce.
};

}  // namespace

constexpr AlgorithmRow kHierarchical{
    .name = "hierarchical",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter},
    .build = build_schedule<Hierarchical>,
    .need = ClusterNeed::TwoLevels,
    // Both directions of every pair in a server, and those between servers.
    .partners = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      const auto ranks = static_cast<std::uint32_t>(layout.ranks());
      return 2 * layout.max_ranks_per_node() + static_cast<int>(std::bit_width(ranks)) + 1;
    }};

}  // namespace trainyard
