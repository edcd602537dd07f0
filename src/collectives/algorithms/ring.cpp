// SPDX-License-Identifier: Apache-2.0
// Rings: bandwidth-optimal, in 2(N-1) steps for all_reduce and N-1 for its halves.
//
// Each channel has its own ring, the order of RankLayout::ring_order, and its own share of the
// data. Let q be the position of a rank in the ring and block b(j) the one that belongs to position
// j mod N.
// - reduce_scatter: for k = 0 .. N-2 send b(q-1-k), then receive and reduce b(q-2-k). What is sent
//   in step k+1 was received in step k. In the end the rank holds all of b(q).
// - all_gather: for k = 0 .. N-2 send b(q-k), then receive b(q-1-k).
// - all_reduce is one after the other, with blocks that nobody owns, so shifted by one:
//   for k = 0 .. 2N-3 send b(q-k), then receive b(q-1-k), reducing while k < N-1.
// On an idle ring of latency a and bandwidth B per hop, for S bytes on one channel:
//   all_reduce 2(N-1)(a + S/(N B)), all_gather and reduce_scatter (N-1)(a + S/(N B)).
// - broadcast and reduce run along the ring as a chain, from or to the root, piece by piece:
//   (N-1) a + (P + N-2) S/(P B) for P pieces.
//
// Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69
// (2009).

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

class RingSchedule : public ChannelSchedule {
 public:
  RingSchedule(Operation operation, const ScheduleOptions& options, std::uint32_t chunks_per_piece)
      : ChannelSchedule("ring", operation, options,
                        {.chunks = static_cast<std::uint32_t>(options.pieces) * chunks_per_piece,
                         .connections = rank_count(options)}),
        pieces_(static_cast<std::uint32_t>(options.pieces)) {
    for (int channel = 0; channel < options.layout.channels(); ++channel) {
      const std::vector<int> order = options.layout.ring_order(channel);
      const std::size_t base = order_.size();
      positions_.resize(base + order.size());
      for (std::size_t position = 0; position < order.size(); ++position) {
        order_.push_back(static_cast<std::uint32_t>(order[position]));
        positions_[base + order_.back()] = static_cast<std::uint32_t>(position);
      }
    }
  }

  // Lane and connection are both channel * N + rank; a connection leads to the next in the ring.
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const final {
    return {.source = RankId(index % ranks()),
            .target = RankId(rank_at(index / ranks(), positions_[index] + 1))};
  }

 protected:
  struct Place {
    std::uint32_t channel;
    std::uint32_t position;
    std::uint32_t incoming;  // Connection; the outgoing one has the number of the lane.
  };
  [[nodiscard]] Place place(LaneId lane) const {
    const std::uint32_t channel = lane.value() / ranks();
    const std::uint32_t position = positions_[lane.value()];
    return {.channel = channel,
            .position = position,
            .incoming = channel * ranks() + rank_at(channel, position + ranks() - 1)};
  }
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t channel, std::uint32_t position) const {
    return order_[channel * ranks() + (position >= ranks() ? position - ranks() : position)];
  }
  [[nodiscard]] std::uint32_t pieces() const { return pieces_; }

 private:
  std::uint32_t pieces_;
  std::vector<std::uint32_t> order_;      // Rank at each channel and position.
  std::vector<std::uint32_t> positions_;  // Position of each channel and rank.
};

// Chunk (channel * pieces + piece) * N + block.
class RingOfBlocks final : public RingSchedule {
 public:
  RingOfBlocks(Operation operation, const ScheduleOptions& options)
      : RingSchedule(operation, options, rank_count(options)),
        rounds_(operation == Operation::AllReduce ? 2 * (ranks() - 1) : ranks() - 1),
        reducing_rounds_(operation == Operation::AllGather ? 0 : ranks() - 1),
        shift_(operation == Operation::ReduceScatter ? 1 : 0) {}

  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override {
    return std::uint64_t{2} * rounds_ * pieces();
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const Place here = place(lane);
    const auto piece = static_cast<std::uint32_t>(index / (2 * rounds_));
    const auto within = static_cast<std::uint32_t>(index % (2 * rounds_));
    const std::uint32_t round = within / 2;
    const bool sends = within % 2 == 0;
    // Positions q - shift - k and one less, kept positive: k is less than 2N.
    const std::uint32_t position =
        (here.position + 3 * ranks() - shift_ - round - (sends ? 0 : 1)) % ranks();
    // Blocks are named for the rank that they belong to.
    const std::uint32_t block = rank_at(here.channel, position);
    const ChunkRange chunks{.first = (here.channel * pieces() + piece) * ranks() + block,
                            .count = 1};
    if (sends) {
      return {.kind = StepKind::Send, .connection = lane.value(), .chunks = chunks};
    }
    return {.kind = round < reducing_rounds_ ? StepKind::Reduce : StepKind::Receive,
            .connection = here.incoming,
            .chunks = chunks};
  }

 private:
  std::uint32_t rounds_;
  std::uint32_t reducing_rounds_;
  std::uint32_t shift_;
};

// Broadcast from the root, or reduce to it. Chunk channel * pieces + piece.
class Chain final : public RingSchedule {
 public:
  Chain(Operation operation, const ScheduleOptions& options)
      : RingSchedule(operation, options, 1), reduces_(operation == Operation::Reduce) {
    for (int channel = 0; channel < options.layout.channels(); ++channel) {
      const LaneId root(static_cast<std::uint32_t>(channel) * ranks() + options.root.value());
      root_positions_.push_back(place(root).position);
    }
  }

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return std::uint64_t{pieces()} * steps_per_piece(distance(lane));
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const Place here = place(lane);
    const std::uint32_t from_start = distance(lane);
    const std::uint32_t per_piece = steps_per_piece(from_start);
    const auto piece = static_cast<std::uint32_t>(index / per_piece);
    const ChunkRange chunks{.first = here.channel * pieces() + piece, .count = 1};
    if (index % per_piece == 0 && from_start > 0) {
      return {.kind = reduces_ ? StepKind::Reduce : StepKind::Receive,
              .connection = here.incoming,
              .chunks = chunks};
    }
    return {.kind = StepKind::Send, .connection = lane.value(), .chunks = chunks};
  }

 private:
  // Hops from the start of the chain: the root for broadcast, the rank behind it for reduce.
  [[nodiscard]] std::uint32_t distance(LaneId lane) const {
    const Place here = place(lane);
    const std::uint32_t start = root_positions_[here.channel] + (reduces_ ? 1 : 0);
    return (here.position + 2 * ranks() - start) % ranks();
  }
  [[nodiscard]] std::uint32_t steps_per_piece(std::uint32_t from_start) const {
    if (ranks() == 1) {
      return 0;
    }
    return from_start == 0 || from_start == ranks() - 1 ? 1 : 2;
  }

  bool reduces_;
  std::vector<std::uint32_t> root_positions_;  // One per channel.
};

}  // namespace

constexpr AlgorithmRow kRing{
    .name = "ring",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                   Operation::Broadcast, Operation::Reduce},
    .build =
        [](Operation operation, const ScheduleOptions& options) {
          return row_of(operation).has_root ? build_schedule<Chain>(operation, options)
                                            : build_schedule<RingOfBlocks>(operation, options);
        },
    .order = ChannelOrder::Walk,
    .stages = [](Operation operation, const RankLayout& layout) -> std::int64_t {
      return row_of(operation).has_root ? layout.ranks() - 1 : 0;
    }};

}  // namespace trainyard
