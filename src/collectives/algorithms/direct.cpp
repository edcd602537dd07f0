// SPDX-License-Identifier: Apache-2.0
// Operations in which every byte goes straight from its owner to its reader.
//
// - alltoall, pairwise: N-1 rounds; in round k rank r sends to r + k and waits for the message of
//   r - k before the next round. One partner at a time each way: (N-1)(a + S/(N B)) when idle.
// - alltoall, direct: all sends at once, then all receives; the links sort it out.
// - alltoallv: either, but pairs that have nothing to exchange send no message.
// - sendrecv: rank r sends to r + 1 and receives from r - 1, as in nccl-tests.
// - scatter: the root sends to every other rank, all at once; gather: the reverse.
// A rank's own block stays where it is and costs nothing.
#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

// Chunk and connection (channel * N + source) * N + target. Where a matrix says which pairs have
// nothing to exchange, what a rank does is written out, since no formula says which those are.
class AllToAll final : public ChannelSchedule {
 public:
  AllToAll(Operation operation, const ScheduleOptions& options, bool pairwise)
      : ChannelSchedule(pairwise ? "pairwise" : "direct", operation, options,
                        {.chunks = rank_count(options) * rank_count(options),
                         .connections = rank_count(options) * rank_count(options),
                         .rendezvous = pairwise,
                         .chunk_cuts = cuts_of(options)}),
        pairwise_(pairwise) {
    if (options.matrix == nullptr) {
      return;
    }
    programs_.resize(ranks());
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      for (std::uint32_t index = 0; index < 2 * (ranks() - 1); ++index) {
        const Step step = step_of(rank, index);
        if (options.matrix->bytes[step.connection] > 0) {
          programs_[rank].push_back(step);
        }
      }
    }
  }

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return programs_.empty() ? std::uint64_t{2} * (ranks() - 1)
                             : programs_[lane.value() % ranks()].size();
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    Step step = programs_.empty() ? step_of(rank, static_cast<std::uint32_t>(index))
                                  : programs_[rank][index];
    step.connection += lane.value() / ranks() * ranks() * ranks();
    step.chunks.first = step.connection;
    return step;
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    return {.source = RankId(index / ranks() % ranks()), .target = RankId(index % ranks())};
  }

 private:
  static std::vector<std::int64_t> cuts_of(const ScheduleOptions& options) {
    if (options.matrix == nullptr) {
      return {};
    }
    std::vector<std::int64_t> cuts{0};
    const int channels = options.layout.channels();
    for (int channel = 0; channel < channels; ++channel) {
      for (const std::int64_t bytes : options.matrix->bytes) {
        cuts.push_back(cuts.back() + bytes * (channel + 1) / channels - bytes * channel / channels);
      }
    }
    return cuts;
  }

  // On channel 0, with all pairs.
  [[nodiscard]] Step step_of(std::uint32_t rank, std::uint32_t index) const {
    const bool sends = pairwise_ ? index % 2 == 0 : index < ranks() - 1;
    const std::uint32_t round = 1 + (pairwise_ ? index / 2 : index % (ranks() - 1));
    const std::uint32_t source = sends ? rank : (rank + ranks() - round) % ranks();
    const std::uint32_t target = sends ? (rank + round) % ranks() : rank;
    const std::uint32_t unit = source * ranks() + target;
    return {.kind = sends ? StepKind::Send : StepKind::Receive,
            .connection = unit,
            .chunks = {.first = unit, .count = 1}};
  }

  bool pairwise_;
  std::vector<std::vector<Step>> programs_;  // One per rank, for channel 0; none without a matrix.
};

// sendrecv. Chunk and connection channel * N + source.
class Shift final : public ChannelSchedule {
 public:
  Shift(Operation operation, const ScheduleOptions& options)
      : ChannelSchedule("direct", operation, options,
                        {.chunks = rank_count(options), .connections = rank_count(options)}) {}

  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override { return 2; }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t first = lane.value() - rank;
    const std::uint32_t unit = first + (index == 0 ? rank : (rank + ranks() - 1) % ranks());
    return {.kind = index == 0 ? StepKind::Send : StepKind::Receive,
            .connection = unit,
            .chunks = {.first = unit, .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t rank = index % ranks();
    return {.source = RankId(rank), .target = RankId((rank + 1) % ranks())};
  }
};

// scatter and gather. Chunk and connection channel * N + the rank that is not the root; the one of
// the root itself is not used.
class Star final : public ChannelSchedule {
 public:
  Star(Operation operation, const ScheduleOptions& options)
      : ChannelSchedule("direct", operation, options,
                        {.chunks = rank_count(options), .connections = rank_count(options)}),
        scatters_(operation == Operation::Scatter) {}

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return lane_rank(lane) == shape().root ? ranks() - 1 : 1;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t first = lane.value() - rank;
    const bool is_root = RankId(rank) == shape().root;
    const std::uint32_t unit =
        first + (is_root ? (rank + 1 + static_cast<std::uint32_t>(index)) % ranks() : rank);
    return {.kind = is_root == scatters_ ? StepKind::Send : StepKind::Receive,
            .connection = unit,
            .chunks = {.first = unit, .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const RankId other(index % ranks());
    return scatters_ ? ScheduleConnection{.source = shape().root, .target = other}
                     : ScheduleConnection{.source = other, .target = shape().root};
  }

 private:
  bool scatters_;
};

bool exchanges(Operation operation) {
  return operation == Operation::AllToAll || operation == Operation::AllToAllV;
}

std::unique_ptr<Schedule> build_direct(Operation operation, const ScheduleOptions& options) {
  if (exchanges(operation)) {
    return std::make_unique<AllToAll>(operation, options, false);
  }
  return operation == Operation::SendReceive ? build_schedule<Shift>(operation, options)
                                             : build_schedule<Star>(operation, options);
}

std::int64_t direct_partners(Operation operation, const RankLayout& layout) {
  return exchanges(operation) ? layout.ranks() : 4;
}

std::int64_t direct_chunks(Operation operation, const RankLayout& layout) {
  return exchanges(operation) ? layout.ranks() : 1;
}

}  // namespace

constexpr AlgorithmRow kPairwise{
    .name = "pairwise",
    .operations = {Operation::AllToAll, Operation::AllToAllV},
    .build = [](Operation operation, const ScheduleOptions& options) -> std::unique_ptr<Schedule> {
      return std::make_unique<AllToAll>(operation, options, true);
    },
    .partners = direct_partners,
    .chunks = direct_chunks};

constexpr AlgorithmRow kDirect{
    .name = "direct",
    .operations = {Operation::AllToAll, Operation::AllToAllV, Operation::SendReceive,
                   Operation::Scatter, Operation::Gather},
    .build = build_direct,
    .partners = direct_partners,
    .chunks = direct_chunks};

}  // namespace trainyard
