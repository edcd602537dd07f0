// SPDX-License-Identifier: Apache-2.0
// PAT as the plain runtime runs it: buffers have no limit, so as many trees as possible are worked
// on together, and every block is a message of its own, since messages cost nothing but their
// bytes. A rank then sends its leaves first and waits for nothing that is not on the way to a root.
// Any N: floor(log2 N) a, the most bits set in an offset, to ceil(log2 N) a for short blocks, at
// least (N-1) t(S/N) + a.
//
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv:2506.20252.
#include "collectives/algorithms/pat.h"

#include <algorithm>
#include <bit>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

std::uint32_t pat_dimension(std::uint32_t offset) {
  CHECK(offset > 0, "a root has no dimension");
  return static_cast<std::uint32_t>(std::countr_zero(offset));
}

std::uint32_t max_pat_aggregation(std::uint32_t ranks) {
  return std::max(1U, std::bit_ceil(ranks) / 2);
}

namespace {

class PatOrder {
 public:
  PatOrder(std::uint32_t ranks, std::uint32_t aggregation)
      : ranks_(ranks), aggregation_(aggregation), depth_(std::bit_ceil(ranks) / aggregation) {}

  std::vector<PatEvent> events() {
    if (ranks_ == 1) {
      return {};
    }
    linear_part();
    for (std::uint32_t scale = 1; scale < aggregation_; scale *= 2) {
      logarithmic_part(scale);
    }
    add_child(1);
    return std::move(events_);
  }

 private:
  // The a-th of `count` numbers, a power of two, in the order of the reversed bits of what is left.
  [[nodiscard]] static std::uint32_t reversed(std::uint32_t a, std::uint32_t count) {
    std::uint32_t result = 0;
    for (std::uint32_t bit = 1, mirrored = count / 2; bit < count; bit *= 2, mirrored /= 2) {
      result |= (a & bit) == 0 ? mirrored : 0;
    }
    return result;
  }

  void add_leaf(std::uint32_t offset) {
    if (offset < ranks_) {
      events_.push_back({.child = offset, .parent = offset, .is_leaf = true, .completes = true});
    }
  }
  void add_child(std::uint32_t child) {
    const std::uint32_t dimension = pat_dimension(child);
    const std::uint32_t parent = child - (1U << dimension);
    const bool completes = dimension == 0;
    if (child < ranks_ || (completes && parent < ranks_)) {
      events_.push_back({.child = child, .parent = parent, .completes = completes});
    }
  }

  void linear_part() {
    for (std::uint32_t offset = depth_ - 1; offset > 0; --offset) {
      if (offset % 2 == 1) {
        for (std::uint32_t a = 0; a < aggregation_; ++a) {
          add_leaf(reversed(a, aggregation_) * depth_ + offset);
        }
      }
      if (offset > 1) {
        for (std::uint32_t a = 0; a < aggregation_; ++a) {
          add_child(reversed(a, aggregation_) * depth_ + offset);
        }
      }
    }
  }
  void logarithmic_part(std::uint32_t scale) {
    const std::uint32_t tops = aggregation_ / (2 * scale);
    for (std::uint32_t a = 0; a < tops; ++a) {
      add_child((2 * reversed(a, tops) + 1) * scale * depth_ + 1);
    }
    for (std::uint32_t a = 0; a < tops; ++a) {
      add_child((2 * reversed(a, tops) + 1) * scale * depth_);
    }
  }

  std::uint32_t ranks_;
  std::uint32_t aggregation_;
  std::uint32_t depth_;  // Offsets in each part that is walked down.
  std::vector<PatEvent> events_;
};

// Chunk channel * N + block; lane channel * N + rank; connection (channel * K + dimension) * N +
// source. Steps are the same for all ranks but for the offset of their blocks.
class PatSchedule final : public ChannelSchedule {
 public:
  PatSchedule(Operation operation, const ScheduleOptions& options)
      : ChannelSchedule(
            "pat", operation, options,
            {.chunks = rank_count(options),
             .connections = doubling_rounds(rank_count(options)) * rank_count(options)}),
        dimensions_(doubling_rounds(ranks())),
        forwards_(operation == Operation::ReduceScatter) {
    const std::vector<PatEvent> events = pat_events(ranks(), max_pat_aggregation(ranks()));
    if (forwards_) {
      std::ranges::for_each(events, [this](const PatEvent& event) { add_reduction(event); });
    } else {
      std::for_each(events.rbegin(), events.rend(),
                    [this](const PatEvent& event) { add_copy(event); });
    }
  }

  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override { return moves_.size(); }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t channel = lane.value() / ranks();
    const Move& move = moves_[index];
    const std::uint32_t source = move.kind == StepKind::Send
                                     ? rank
                                     : doubling_partner(rank, move.dimension, !forwards_, ranks());
    return {.kind = move.kind,
            .connection = (channel * dimensions_ + move.dimension) * ranks() + source,
            .chunks = {.first = channel * ranks() + (rank + move.offset) % ranks(), .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t source = index % ranks();
    return {.source = RankId(source),
            .target = RankId(
                doubling_partner(source, index / ranks() % dimensions_, forwards_, ranks()))};
  }

 private:
  struct Move {
    StepKind kind = StepKind::Send;
    std::uint32_t dimension = 0;
    std::uint32_t offset = 0;  // Distance of the block from the rank.
  };

  void add_reduction(const PatEvent& event) {
    if (!event.is_leaf && event.child < ranks()) {
      moves_.push_back({.kind = StepKind::Reduce,
                        .dimension = pat_dimension(event.child),
                        .offset = event.parent});
    }
    if (event.completes && event.parent > 0) {
      moves_.push_back({.kind = StepKind::Send,
                        .dimension = pat_dimension(event.parent),
                        .offset = event.parent});
    }
  }
  void add_copy(const PatEvent& event) {
    if (event.completes && event.parent > 0) {
      moves_.push_back({.kind = StepKind::Receive,
                        .dimension = pat_dimension(event.parent),
                        .offset = event.parent});
    }
    if (!event.is_leaf && event.child < ranks()) {
      moves_.push_back({.kind = StepKind::Send,
                        .dimension = pat_dimension(event.child),
                        .offset = event.parent});
    }
  }

  std::uint32_t dimensions_;
  bool forwards_;  // Sends to higher ranks: reduce_scatter.
  std::vector<Move> moves_;
};

}  // namespace

std::vector<PatEvent> pat_events(std::uint32_t ranks, std::uint32_t aggregation) {
  CHECK(std::has_single_bit(aggregation), "the aggregation is a power of two");
  CHECK(aggregation <= max_pat_aggregation(ranks), "more trees than there are");
  return PatOrder(ranks, aggregation).events();
}

constexpr AlgorithmRow kPat{.name = "pat",
                            .operations = {Operation::AllGather, Operation::ReduceScatter},
                            .build = build_schedule<PatSchedule>};

}  // namespace trainyard
