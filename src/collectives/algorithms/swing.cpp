// SPDX-License-Identifier: Apache-2.0
// Swing: all_reduce on tori in few steps between ranks that are near each other.
//
// In step k of a dimension of even length p, the rank at coordinate x exchanges with x + rho(k) if
// x is even and with x - rho(k) if x is odd, modulo p, where
//   rho(k) = 1 - 2 + 4 - ... + (-2)^k = (1 - (-2)^(k+1)) / 3 = 1, -1, 3, -5, 11, ...
// There are ceil(log2 p) steps, and the distance is a third of 2^(k+1) where that of recursive
// doubling is 2^k. On a torus, steps go round the dimensions that have steps left; channel c of the
// 2n begins with dimension c mod n of the n, and is mirrored (all signs change) where c / n is odd,
// so that all 2n links of a rank work at once.
//
// The bandwidth-optimal variant is a reduce_scatter followed by the same steps backwards as an
// all_gather. In reduce_scatter every rank r sends its sum for the block of rank d exactly once, to
// a rank from which later steps lead to d. Where several steps do, as they can if p is no power of
// two, r takes the last one, so that every block is sent by N-1 ranks and none is added twice. The
// block of d leaves r in step
//   s(r, d) = the least, over the dimensions in which r and d differ, of the last step of this
//             dimension after which the steps that are left lead to the coordinate of d.
// The receiver differs from d in no new dimension, and its own s is greater. Both are functions of
// the offset d - r, counted in the direction in which r goes first: one table serves all ranks.
//
// A dimension of odd length, for which the paper adds a rank to an even one, takes the distances
// (-2)^k, in the same direction for all ranks: each sends to one rank and receives from another.
// Subset sums of 1, -2, 4, ... are 2^steps integers in a row, so they reach every rank.
//
// On idle links of latency a and bandwidth B, N = 2^q ranks, one channel:
//   2 sum over r < q of (a + t(2^r S/N)) = 2 log2(N) a + 2 (N-1)/N S/B.
//
// De Sensi, Bonato, Saam, Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth Allreduce",
// NSDI 2024 (arXiv:2401.09356).
#include <algorithm>
#include <bit>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

// A dimension of the torus by itself.
class SwingDimension {
 public:
  SwingDimension(std::uint32_t length, std::uint32_t stride)
      : length_(length), stride_(stride), last_steps_(length, kNoStep) {
    const bool is_even = length % 2 == 0;
    std::int64_t power = 1;
    std::int64_t sum = 0;
    while (distances_.size() < static_cast<std::size_t>(std::bit_width(length - 1))) {
      sum += power;
      distances_.push_back(residue(is_even ? sum : power));
      power *= -2;
    }
    // Backwards in time: an offset is first met at the last step that leads to it.
    std::vector<std::uint32_t> reached{0};
    for (auto step = static_cast<std::uint32_t>(distances_.size()); step-- > 0;) {
      const std::vector<std::uint32_t> later = reached;
      for (const std::int64_t offset : later) {
        // The partner of an even step counts its offsets in the other direction.
        const std::uint32_t found = residue(distances_[step] + (is_even ? -offset : offset));
        if (found != 0 && last_steps_[found] == kNoStep) {
          last_steps_[found] = step;
          reached.push_back(found);
        }
      }
    }
    CHECK(reached.size() == length, "steps that do not reach every rank");
  }

  [[nodiscard]] std::uint32_t steps() const {
    return static_cast<std::uint32_t>(distances_.size());
  }
  // The coordinate in this dimension of a rank, or of an offset, which is numbered like a rank.
  [[nodiscard]] std::uint32_t coordinate(std::uint32_t rank) const {
    return rank / stride_ % length_;
  }
  // The last step that leads to an offset above zero.
  [[nodiscard]] std::uint32_t last_step(std::uint32_t offset) const { return last_steps_[offset]; }
  // The rank at an offset, counted in the direction in which `rank` goes first.
  [[nodiscard]] std::uint32_t at_offset(std::uint32_t rank, std::uint32_t offset,
                                        bool mirrored) const {
    const std::uint32_t here = coordinate(rank);
    const bool turns = length_ % 2 == 0 && here % 2 == 1;
    const std::uint32_t there = (here + (turns == mirrored ? offset : length_ - offset)) % length_;
    return rank - here * stride_ + there * stride_;
  }
  [[nodiscard]] std::uint32_t target(std::uint32_t rank, std::uint32_t step, bool mirrored) const {
    return at_offset(rank, distances_[step], mirrored);
  }
  // The rank whose target this one is.
  [[nodiscard]] std::uint32_t source(std::uint32_t rank, std::uint32_t step, bool mirrored) const {
    return at_offset(rank, distances_[step], mirrored != (length_ % 2 == 1));
  }

 private:
  static constexpr std::uint32_t kNoStep = 0xffff'ffff;

  [[nodiscard]] std::uint32_t residue(std::int64_t number) const {
    const std::int64_t length = length_;
    return static_cast<std::uint32_t>((number % length + length) % length);
  }

  std::uint32_t length_;
  std::uint32_t stride_;
  std::vector<std::uint32_t> distances_;   // One per step; modulo the length.
  std::vector<std::uint32_t> last_steps_;  // One per offset.
};

// Chunk channel * N + block, named for its rank. Entry (channel * N + r) * N + i lists, for each
// rank r, the blocks in the order in which r sends them in reduce_scatter, its own block last. Lane
// channel * N + rank. Connection ((channel * 2 + half) * steps + step) * N + source, half 1 being
// all_gather.
class Swing final : public ChannelSchedule {
 public:
  Swing(Operation operation, const ScheduleOptions& options)
      : Swing(operation, options, dimensions_of(options)) {}

  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override {
    return std::uint64_t{4} * steps_;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t channel = lane.value() / ranks();
    const auto round = static_cast<std::uint32_t>(index / 2);
    const bool sends = index % 2 == 0;
    const bool gathers = round >= steps_;
    const std::uint32_t number = gathers ? 2 * steps_ - 1 - round : round;
    const Way way = way_of(channel);
    const Turn& turn = way.walk.turns[number];
    // all_gather returns what reduce_scatter brought, by the same way.
    const std::uint32_t from = turn.dimension->source(rank, turn.step, way.mirrored);
    const std::uint32_t to = turn.dimension->target(rank, turn.step, way.mirrored);
    const std::uint32_t holder = sends == gathers ? from : rank;
    const std::uint32_t sender = sends ? rank : gathers ? to : from;
    return {.kind = sends     ? StepKind::Send
                    : gathers ? StepKind::Receive
                              : StepKind::Reduce,
            .connection = ((channel * 2 + (gathers ? 1 : 0)) * steps_ + number) * ranks() + sender,
            .chunks = {.first = (channel * ranks() + holder) * ranks() + turn.first,
                       .count = turn.count}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t source = index % ranks();
    const std::uint32_t half = index / ranks() / steps_;
    const Way way = way_of(half / 2);
    const Turn& turn = way.walk.turns[index / ranks() % steps_];
    const std::uint32_t target = half % 2 == 1
                                     ? turn.dimension->source(source, turn.step, way.mirrored)
                                     : turn.dimension->target(source, turn.step, way.mirrored);
    return {.source = RankId(source), .target = RankId(target)};
  }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    const std::uint32_t channel = entry / ranks() / ranks();
    const Way way = way_of(channel);
    const std::uint32_t offset = way.walk.offsets[entry % ranks()];
    std::uint32_t block = entry / ranks() % ranks();
    for (const SwingDimension& dimension : dimensions_) {
      block = dimension.at_offset(block, dimension.coordinate(offset), way.mirrored);
    }
    return channel * ranks() + block;
  }

 private:
  // A step of the torus: that of a dimension, and the places in the listing of what it carries.
  struct Turn {
    const SwingDimension* dimension;
    std::uint32_t step;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct Walk {
    std::vector<Turn> turns;
    std::vector<std::uint32_t> offsets;  // One per place in the listing.
  };
  struct Way {
    const Walk& walk;
    bool mirrored;
  };

  static std::vector<SwingDimension> dimensions_of(const ScheduleOptions& options) {
    std::vector<SwingDimension> dimensions;
    std::uint32_t stride = 1;
    const int ranks = options.layout.ranks();
    for (const int length : options.dimensions.empty() ? std::vector{ranks} : options.dimensions) {
      dimensions.emplace_back(static_cast<std::uint32_t>(length), stride);
      stride *= static_cast<std::uint32_t>(length);
    }
    CHECK(stride == rank_count(options), "the ranks do not fill the grid");
    return dimensions;
  }

  Swing(Operation operation, const ScheduleOptions& options, std::vector<SwingDimension> dimensions)
      : ChannelSchedule("swing", operation, options,
                        {.chunks = rank_count(options),
                         .connections = 2 * steps_of(dimensions) * rank_count(options),
                         .entries = rank_count(options) * rank_count(options),
                         .rendezvous = true}),
        steps_(steps_of(dimensions)),
        mirrors_(options.rotate_dimensions),
        dimensions_(std::move(dimensions)) {
    for (std::size_t first = 0; first < (mirrors_ ? dimensions_.size() : 1); ++first) {
      walks_.push_back(walk_from(first));
    }
  }

  static std::uint32_t steps_of(const std::vector<SwingDimension>& dimensions) {
    std::uint32_t steps = 0;
    for (const SwingDimension& dimension : dimensions) {
      steps += dimension.steps();
    }
    return steps;
  }

  [[nodiscard]] Walk walk_from(std::size_t first) const {
    Walk walk;
    for (std::uint32_t step = 0; walk.turns.size() < steps_; ++step) {
      for (std::size_t i = 0; i < dimensions_.size(); ++i) {
        const SwingDimension& dimension = dimensions_[(first + i) % dimensions_.size()];
        if (step < dimension.steps()) {
          walk.turns.push_back({.dimension = &dimension, .step = step});
        }
      }
    }
    // The first turn that a block at this offset cannot do without; beyond the last for its own.
    const auto leaves = [&](std::uint32_t offset) {
      return std::ranges::find_if(walk.turns, [offset](const Turn& turn) {
        const std::uint32_t own = turn.dimension->coordinate(offset);
        return own != 0 && turn.dimension->last_step(own) == turn.step;
      });
    };
    std::vector<std::vector<std::uint32_t>> sorted(steps_ + 1);
    for (std::uint32_t offset = 0; offset < ranks(); ++offset) {
      sorted[static_cast<std::size_t>(leaves(offset) - walk.turns.begin())].push_back(offset);
    }
    for (std::uint32_t turn = 0; turn <= steps_; ++turn) {
      if (turn < steps_) {
        walk.turns[turn].first = static_cast<std::uint32_t>(walk.offsets.size());
        walk.turns[turn].count = static_cast<std::uint32_t>(sorted[turn].size());
      }
      walk.offsets.insert(walk.offsets.end(), sorted[turn].begin(), sorted[turn].end());
    }
    return walk;
  }

  [[nodiscard]] Way way_of(std::uint32_t channel) const {
    const auto walks = static_cast<std::uint32_t>(walks_.size());
    return {.walk = walks_[channel % walks], .mirrored = mirrors_ && channel / walks % 2 == 1};
  }

  std::uint32_t steps_;
  bool mirrors_;
  std::vector<SwingDimension> dimensions_;
  std::vector<Walk> walks_;  // One per dimension that may be first.
};

}  // namespace

constexpr AlgorithmRow kSwing{
    .name = "swing",
    .operations = {Operation::AllReduce},
    .build = build_schedule<Swing>,
    .need = ClusterNeed::FabricGrid,
    // At most 4/3 of log2(ranks) steps, in dimensions of three, and two connections for each.
    .partners = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      return 3 * std::bit_width(static_cast<std::uint32_t>(layout.ranks()));
    },
    .chunks = [](Operation /*operation*/, const RankLayout& layout) -> std::int64_t {
      return layout.ranks();
    }};

}  // namespace trainyard
