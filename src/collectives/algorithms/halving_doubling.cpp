// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling: as many bytes as a ring in 2 log2 N steps; and recursive
// doubling: the whole message in every one of log2 N steps.
//
// Let M be the greatest power of two that is not above N, and E = N - M. The first 2E ranks are
// pairs; the even one of a pair is idle in between: it gives its data to the odd one before and
// gets its result from it after. The M others, renumbered n = 0 .. M-1, each stand for their own
// block and that of their idle partner. They have places p = 0 .. M-1, and hold ranges of places:
// - halving (reduce_scatter): for mask = M/2 .. 1, exchange with p xor mask: send the half of the
//   range that the partner keeps, receive and reduce one's own half.
// - doubling (all_gather): for mask = 1 .. M/2, exchange with p xor mask: send what one has,
//   receive what the partner has.
// all_reduce is halving, then doubling.
//
// halving-doubling has p = n with its bits reversed, so that halving begins with the nearest
// partner, n xor 1, and half of the data, and ends with the farthest and one block; doubling goes
// back. The large messages stay inside a server or below a leaf, and what a rank holds are blocks
// that are not next to each other. halving-doubling-far has p = n: it begins with the farthest
// partner, so that all blocks are ranges of the buffer, and half of the data crosses the cluster.
// Thakur et al. have both, for all_reduce and for reduce_scatter; Gloo has the nearest first.
//
// Recursive doubling is, for all_reduce, one exchange of everything with each n xor mask, mask = 1
// .. M/2, and for all_gather the doubling with p = n. With N = M, latency a and bandwidth B:
//   all_reduce 2 log2(N) a + 2 (N-1)/N S/B, the halves one half of that;
//   all_reduce by recursive doubling log2(N) (a + S/B).
// Otherwise at least two more steps of the whole message for all_reduce, 2 (a + S/B), and more in
// the flow engine: ranks without an idle partner start at once and share links with the first step.
//
// Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in MPICH",
// IJHPCA 19 (2005); Gloo, docs/algorithms.md (allreduce_halving_doubling: vector halving, distance
// doubling).
#include <bit>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

enum class HalvingOrder : std::uint8_t { NearFirst, FarFirst, Whole };

// Chunk channel * N + block, and entry channel * N + i: the blocks in the order of places.
class HalvingDoubling final : public ChannelSchedule {
 public:
  HalvingDoubling(std::string_view name, HalvingOrder order, Operation operation,
                  const ScheduleOptions& options)
      : ChannelSchedule(name, operation, options,
                        {.chunks = rank_count(options),
                         .connections = (rounds_of(rank_count(options)) + 1) * rank_count(options),
                         .entries = order == HalvingOrder::NearFirst ? rank_count(options) : 0,
                         .rendezvous = true}),
        whole_(order == HalvingOrder::Whole && operation == Operation::AllReduce),
        reverses_(order == HalvingOrder::NearFirst),
        idle_(ranks() - std::bit_floor(ranks())),
        rounds_(rounds_of(ranks())) {
    list_blocks();
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
      target = rank_of(place_of(source) ^ (1U << round));
    }
    return {.source = RankId(source), .target = RankId(target)};
  }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    return entry / ranks() * ranks() + blocks_[entry % ranks()];
  }

 private:
  static std::uint32_t rounds_of(std::uint32_t ranks) {
    return static_cast<std::uint32_t>(std::bit_width(ranks) - 1);
  }
  [[nodiscard]] bool is_idle(std::uint32_t rank) const { return rank < 2 * idle_ && rank % 2 == 0; }
  // The number that has a place, or the place of a number.
  [[nodiscard]] std::uint32_t turned(std::uint32_t number) const {
    if (!reverses_) {
      return number;
    }
    std::uint32_t reversed = 0;
    for (std::uint32_t bit = 0; bit < rounds_; ++bit) {
      reversed |= (number >> bit & 1U) << (rounds_ - 1 - bit);
    }
    return reversed;
  }
  [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const {
    return turned(rank < 2 * idle_ ? rank / 2 : rank - idle_);
  }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t place) const {
    const std::uint32_t number = turned(place);
    return number < idle_ ? 2 * number + 1 : number + idle_;
  }
  void list_blocks() {
    for (std::uint32_t place = 0; place < std::bit_floor(ranks()); ++place) {
      first_entries_.push_back(static_cast<std::uint32_t>(blocks_.size()));
      const std::uint32_t rank = rank_of(place);
      if (rank < 2 * idle_) {
        blocks_.push_back(rank - 1);
      }
      blocks_.push_back(rank);
    }
    first_entries_.push_back(ranks());
  }
  [[nodiscard]] ChunkRange blocks(std::uint32_t first_place, std::uint32_t count) const {
    const std::uint32_t first = first_entries_[first_place];
    return {.first = first, .count = first_entries_[first_place + count] - first};
  }
  // The one block of a rank.
  [[nodiscard]] ChunkRange block_of(std::uint32_t rank) const {
    const std::uint32_t first = first_entries_[place_of(rank | (rank < 2 * idle_ ? 1U : 0U))];
    return {.first = first + (rank < 2 * idle_ ? rank % 2 : 0), .count = 1};
  }

  void exchange(std::vector<Step>& steps, std::uint32_t rank, std::uint32_t round, ChunkRange sent,
                StepKind kind, ChunkRange received) const {
    const std::uint32_t partner = rank_of(place_of(rank) ^ (1U << round));
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
      const ChunkRange own = block_of(rank);
      steps.push_back(
          {.kind = StepKind::Send, .connection = to_pair, .chunks = reduces ? everything : own});
      steps.push_back({.kind = StepKind::Receive,
                       .connection = from_pair,
                       .chunks = gathers ? everything : own});
      return steps;
    }
    const bool paired = rank < 2 * idle_;
    const ChunkRange partners = paired ? block_of(rank ^ 1U) : ChunkRange{};
    if (paired) {
      steps.push_back({.kind = reduces ? StepKind::Reduce : StepKind::Receive,
                       .connection = from_pair,
                       .chunks = reduces ? everything : partners});
    }
    const std::uint32_t place = place_of(rank);
    if (whole_) {
      for (std::uint32_t round = 0; round < rounds_; ++round) {
        exchange(steps, rank, round, everything, StepKind::Reduce, everything);
      }
    } else if (reduces) {
      for (std::uint32_t round = rounds_; round-- > 0;) {
        const std::uint32_t half = 1U << round;
        const std::uint32_t kept = place & ~(half - 1);
        exchange(steps, rank, round, blocks(kept ^ half, half), StepKind::Reduce,
                 blocks(kept, half));
      }
    }
    if (gathers && !whole_) {
      for (std::uint32_t round = 0; round < rounds_; ++round) {
        const std::uint32_t have = 1U << round;
        const std::uint32_t held = place & ~(have - 1);
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

  bool whole_;     // Exchanges everything every time.
  bool reverses_;  // The bits of a place are those of a number backwards.
  std::uint32_t idle_;
  std::uint32_t rounds_;
  std::vector<std::uint32_t> blocks_;         // In the order of places.
  std::vector<std::uint32_t> first_entries_;  // One for each place, and the end.
  std::vector<std::vector<Step>> programs_;   // One per rank, for channel 0; O(N log N) steps.
};

template <HalvingOrder kOrder, Algorithm kRow>
std::unique_ptr<Schedule> build_halving(Operation operation, const ScheduleOptions& options) {
  return std::make_unique<HalvingDoubling>(kRow->name, kOrder, operation, options);
}

}  // namespace

constexpr AlgorithmRow kHalvingDoubling{
    .name = "halving-doubling",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter},
    .build = build_halving<HalvingOrder::NearFirst, &kHalvingDoubling>};

constexpr AlgorithmRow kHalvingDoublingFar{
    .name = "halving-doubling-far",
    .operations = kHalvingDoubling.operations,
    .build = build_halving<HalvingOrder::FarFirst, &kHalvingDoublingFar>};

constexpr AlgorithmRow kRecursiveDoubling{
    .name = "recursive-doubling",
    .operations = {Operation::AllReduce, Operation::AllGather},
    .build = build_halving<HalvingOrder::Whole, &kRecursiveDoubling>};

}  // namespace trainyard
