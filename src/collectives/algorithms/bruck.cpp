// SPDX-License-Identifier: Apache-2.0
// Bruck's algorithms: ceil(log2 N) rounds for any number of ranks.
//
// K = ceil(log2 N). In round k = 0 .. K-1
// - all_gather: rank r holds the blocks of r .. r + 2^k - 1 (counted around). It sends the first
//   min(2^k, N - 2^k) of them to r - 2^k and receives as many from r + 2^k, those that follow its
//   own. Every block arrives once, so as many bytes as a ring moves.
// - alltoall: a block from s to t has the offset d = t - s. In round k every rank sends to r + 2^k
//   all blocks that it has whose offset has bit k; they travel as far as their offset says, one bit
//   a round. A round moves at most N/2 blocks, in one message: fewer messages than a direct
//   exchange, and (log2 N)/2 times its bytes.
// With latency a and bandwidth B, S as in nccl-tests, n_k the number of offsets below N with bit k:
//   all_gather  K a + the sum of t(min(2^k, N - 2^k) S/N),
//   alltoall    K a + the sum of t(n_k S/N).
//
// Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE TPDS 8 (1997).
#include <algorithm>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

// Lane channel * N + rank; connection (channel * K + round) * N + source. Even steps send.
class BruckSchedule : public ChannelSchedule {
 public:
  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override {
    return std::uint64_t{2} * rounds_;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t channel = lane.value() / ranks();
    const auto round = static_cast<std::uint32_t>(index / 2);
    const bool sends = index % 2 == 0;
    const std::uint32_t source = sends ? rank : doubling_partner(rank, round, !upwards_, ranks());
    return {.kind = sends ? StepKind::Send : StepKind::Receive,
            .connection = (channel * rounds_ + round) * ranks() + source,
            .chunks = message(channel, round, source)};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t source = index % ranks();
    return {
        .source = RankId(source),
        .target = RankId(doubling_partner(source, index / ranks() % rounds_, upwards_, ranks()))};
  }

 protected:
  BruckSchedule(Operation operation, const ScheduleOptions& options, std::uint32_t chunks,
                std::uint32_t entries, bool upwards)
      : ChannelSchedule("bruck", operation, options,
                        {.chunks = chunks,
                         .connections = doubling_rounds(rank_count(options)) * rank_count(options),
                         .entries = entries}),
        rounds_(doubling_rounds(ranks())),
        upwards_(upwards) {}

  [[nodiscard]] std::uint32_t rounds() const { return rounds_; }
  // Returns the entries that this rank sends in the round.
  [[nodiscard]] virtual ChunkRange message(std::uint32_t channel, std::uint32_t round,
                                           std::uint32_t source) const = 0;

 private:
  std::uint32_t rounds_;
  bool upwards_;
};

// Chunk channel * N + block. Entry channel * 2N + b is block b mod N, so that ranges may go around.
class BruckGather final : public BruckSchedule {
 public:
  BruckGather(Operation operation, const ScheduleOptions& options)
      : BruckSchedule(operation, options, rank_count(options), 2 * rank_count(options), false) {}

  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    return entry / (2 * ranks()) * ranks() + entry % ranks();
  }

 private:
  [[nodiscard]] ChunkRange message(std::uint32_t channel, std::uint32_t round,
                                   std::uint32_t source) const override {
    const std::uint32_t held = 1U << round;
    return {.first = channel * 2 * ranks() + source, .count = std::min(held, ranks() - held)};
  }
};

// Chunk (channel * N + source) * N + target. Entry ((channel * K + round) * N + rank) * H + j, with
// H = N/2 rounded down: the j-th offset with the bit of the round, as this rank has it then.
class BruckExchange final : public BruckSchedule {
 public:
  BruckExchange(Operation operation, const ScheduleOptions& options)
      : BruckSchedule(
            operation, options, rank_count(options) * rank_count(options),
            doubling_rounds(rank_count(options)) * rank_count(options) * (rank_count(options) / 2),
            true),
        half_(ranks() / 2) {}

  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    const std::uint32_t index = entry % half_;
    const std::uint32_t rank = entry / half_ % ranks();
    const std::uint32_t round = entry / half_ / ranks() % rounds();
    const std::uint32_t channel = entry / half_ / ranks() / rounds();
    const std::uint32_t bit = 1U << round;
    const std::uint32_t travelled = index & (bit - 1);  // The bits below that of the round.
    const std::uint32_t offset = (index >> round << (round + 1)) | bit | travelled;
    const std::uint32_t source = (rank + ranks() - travelled) % ranks();
    return (channel * ranks() + source) * ranks() + (source + offset) % ranks();
  }

 private:
  [[nodiscard]] ChunkRange message(std::uint32_t channel, std::uint32_t round,
                                   std::uint32_t source) const override {
    // Offsets below N with this bit: whole periods of 2^(k+1), and what is left of the last.
    const std::uint32_t bit = 1U << round;
    const std::uint32_t rest = ranks() % (2 * bit);
    const std::uint32_t count = ranks() / (2 * bit) * bit + (rest > bit ? rest - bit : 0);
    return {.first = ((channel * rounds() + round) * ranks() + source) * half_, .count = count};
  }

  std::uint32_t half_;
};

// alltoall sends half of the blocks in each round.
std::int64_t bruck_chunks(Operation operation, const RankLayout& layout) {
  const std::int64_t ranks = layout.ranks();
  const std::int64_t rounds = doubling_rounds(static_cast<std::uint32_t>(ranks));
  return operation == Operation::AllGather ? 2 : std::max(ranks, ranks / 2 * rounds);
}

}  // namespace

constexpr AlgorithmRow kBruck{.name = "bruck",
                              .operations = {Operation::AllGather, Operation::AllToAll},
                              .build =
                                  [](Operation operation, const ScheduleOptions& options) {
                                    return operation == Operation::AllGather
                                               ? build_schedule<BruckGather>(operation, options)
                                               : build_schedule<BruckExchange>(operation, options);
                                  },
                              .chunks = bruck_chunks};

}  // namespace trainyard
