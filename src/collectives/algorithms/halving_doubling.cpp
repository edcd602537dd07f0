// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling: as many bytes as a ring in 2 log2 N steps; and recursive
// doubling: the whole message in every one of log2 N steps.
//
// Let M be the greatest power of two that is not above N, and E = N - M. The first 2E ranks are
// pairs; the even one of a pair is idle in between: it gives its data to the odd one before and
// gets its result from it after. The M others, renumbered n = 0 .. M-1, hold ranges of blocks: n
// represents its own block and that of its idle partner.
// - halving (reduce_scatter): for mask = M/2 .. 1, exchange with n xor mask: send the half of the
//   range that the partner keeps, receive and reduce one's own half.
// - doubling (all_gather): for mask = 1 .. M/2, exchange with n xor mask: send what one has,
//   receive what the partner has.
// all_reduce is halving, then doubling; or, for recursive doubling, one exchange of everything with
// each n xor mask, mask = 1 .. M/2. all_gather by recursive doubling is the doubling above. With N
// = M, latency a and bandwidth B:
//   all_reduce 2 log2(N) a + 2 (N-1)/N S/B, the halves one half of that;
//   all_reduce by recursive doubling log2(N) (a + S/B).
// Otherwise at least two more steps of the whole message for all_reduce, 2 (a + S/B), and more in
// the flow engine: ranks without an idle partner start at once and share links with the first step.
//
// Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19 (2005).
#include <bit>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

class HalvingDoubling final : public ChannelSchedule {
 public:
  HalvingDoubling(std::string_view name, bool whole, Operation operation,
                  const ScheduleOptions& options)
      : ChannelSchedule(name, operation, options,
                        {.chunks = rank_count(options),
                         .connections = (rounds_of(rank_count(options)) + 1) * rank_count(options),
                         .rendezvous = true}),
        whole_(whole && operation == Operation::AllReduce),
        idle_(ranks() - std::bit_floor(ranks())),
        rounds_(rounds_of(ranks())) {
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
      programs_.push_back(program(operation, rank));
    }
  }

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return programs_[lane.value() % ranks()].size();
  }
  // The programs of a rank on all channels are alike but for the numbers of connections and chunks.
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t channel = lane.value() / ranks();
    Step step = programs_[lane.value() % ranks()][index];
    step.connection += channel * (rounds_ + 1) * ranks();
    step.chunks.first += channel * ranks();
    return step;
  }
  // Connection (channel * (rounds + 1) + round) * N + source: to the partner of that round, and in
  // the last "round" to the partner of the pair.
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t source = index % ranks();
    const std::uint32_t round = index / ranks() % (rounds_ + 1);
    std::uint32_t target = source;
    if (round == rounds_) {
      if (source < 2 * idle_) {
        target = source ^ 1U;
      }
    } else if (!is_idle(source)) {
      target = rank_of(number_of(source) ^ (1U << round));
    }
    return {.source = RankId(source), .target = RankId(target)};
  }

 private:
  static std::uint32_t rounds_of(std::uint32_t ranks) {
    return static_cast<std::uint32_t>(std::bit_width(ranks) - 1);
  }
  [[nodiscard]] bool is_idle(std::uint32_t rank) const { return rank < 2 * idle_ && rank % 2 == 0; }
  [[nodiscard]] std::uint32_t number_of(std::uint32_t rank) const {
    return rank < 2 * idle_ ? rank / 2 : rank - idle_;
  }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t number) const {
    return number < idle_ ? 2 * number + 1 : number + idle_;
  }
  // First block of those that number and its idle partner stand for.
  [[nodiscard]] std::uint32_t first_block(std::uint32_t number) const {
    return number < idle_ ? 2 * number : number + idle_;
  }
  [[nodiscard]] ChunkRange blocks(std::uint32_t first_number, std::uint32_t count) const {
    const std::uint32_t first = first_block(first_number);
    return {.first = first, .count = first_block(first_number + count) - first};
  }

  void exchange(std::vector<Step>& steps, std::uint32_t rank, std::uint32_t round, ChunkRange sent,
                StepKind kind, ChunkRange received) const {
    const std::uint32_t partner = rank_of(number_of(rank) ^ (1U << round));
    steps.push_back({.kind = StepKind::Send, .connection = round * ranks() + rank, .chunks = sent});
    steps.push_back({.kind = kind, .connection = round * ranks() + partner, .chunks = received});
  }

  [[nodiscard]] std::vector<Step> program(Operation operation, std::uint32_t rank) const {
    const bool reduces = operation != Operation::AllGather;
    const bool gathers = operation != Operation::ReduceScatter;
    const ChunkRange everything{.first = 0, .count = ranks()};
    const std::uint32_t to_pair = rounds_ * ranks() + rank;
    const std::uint32_t from_pair = rounds_ * ranks() + (rank ^ 1U);
    std::vector<Step> steps;
    if (is_idle(rank)) {
      const ChunkRange own{.first = rank, .count = 1};
      steps.push_back(
          {.kind = StepKind::Send, .connection = to_pair, .chunks = reduces ? everything : own});
      steps.push_back({.kind = StepKind::Receive,
                       .connection = from_pair,
                       .chunks = gathers ? everything : own});
      return steps;
    }
    const bool paired = rank < 2 * idle_;
    const ChunkRange partners{.first = rank ^ 1U, .count = 1};
    if (paired) {
      steps.push_back({.kind = reduces ? StepKind::Reduce : StepKind::Receive,
                       .connection = from_pair,
                       .chunks = reduces ? everything : partners});
    }
    const std::uint32_t number = number_of(rank);
    if (whole_) {
      for (std::uint32_t round = 0; round < rounds_; ++round) {
        exchange(steps, rank, round, everything, StepKind::Reduce, everything);
      }
    } else if (reduces) {
      for (std::uint32_t round = rounds_; round-- > 0;) {
        const std::uint32_t half = 1U << round;
        const std::uint32_t kept = number & ~(half - 1);
        exchange(steps, rank, round, blocks(kept ^ half, half), StepKind::Reduce,
                 blocks(kept, half));
      }
    }
    if (gathers && !whole_) {
      for (std::uint32_t round = 0; round < rounds_; ++round) {
        const std::uint32_t have = 1U << round;
        const std::uint32_t held = number & ~(have - 1);
        exchange(steps, rank, round, blocks(held, have), StepKind::Receive,
                 blocks(held ^ have, have));
      }
    }
    if (paired) {
      steps.push_back({.kind = StepKind::Send,
                       .connection = to_pair,
                       .chunks = gathers ? everything : partners});
    }
    return steps;
  }

  bool whole_;  // Exchanges everything every time.
  std::uint32_t idle_;
  std::uint32_t rounds_;
  std::vector<std::vector<Step>> programs_;  // One per rank, for channel 0; O(N log N) steps.
};

}  // namespace

constexpr AlgorithmRow kHalvingDoubling{
    .name = "halving-doubling",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter},
    .build = [](Operation operation, const ScheduleOptions& options) -> std::unique_ptr<Schedule> {
      return std::make_unique<HalvingDoubling>("halving-doubling", false, operation, options);
    }};

constexpr AlgorithmRow kRecursiveDoubling{
    .name = "recursive-doubling",
    .operations = {Operation::AllReduce, Operation::AllGather},
    .build = [](Operation operation, const ScheduleOptions& options) -> std::unique_ptr<Schedule> {
      return std::make_unique<HalvingDoubling>("recursive-doubling", true, operation, options);
    }};

}  // namespace trainyard
