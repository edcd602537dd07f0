// SPDX-License-Identifier: Apache-2.0
// The dissemination barrier: in round k = 0 .. ceil(log2 N) - 1 rank r tells r + 2^k that it has
// come, with all of whom it knows, and waits for the same from r - 2^k. After round k it knows of
// the 2^(k+1) ranks up to itself, so in the end of all. Messages have no bytes: ceil(log2 N) a.
//
// Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", International Journal of
// Parallel Programming 17 (1988).
#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

// Lane rank; connection round * N + source. Chunk 0 is the knowledge; there is one channel's worth
// of it however many channels there are.
class Dissemination final : public Schedule {
 public:
  Dissemination(Operation operation, const ScheduleOptions& options)
      : Schedule(shape_of(operation, options)),
        ranks_(rank_count(options)),
        rounds_(doubling_rounds(ranks_)) {}

  [[nodiscard]] RankId lane_rank(LaneId lane) const override { return RankId(lane.value()); }
  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override {
    return std::uint64_t{2} * rounds_;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const auto round = static_cast<std::uint32_t>(index / 2);
    const bool sends = index % 2 == 0;
    const std::uint32_t source =
        sends ? lane.value() : doubling_partner(lane.value(), round, false, ranks_);
    return {.kind = sends ? StepKind::Send : StepKind::Reduce,
            .connection = round * ranks_ + source,
            .chunks = {.first = 0, .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t source = index % ranks_;
    return {.source = RankId(source),
            .target = RankId(doubling_partner(source, index / ranks_, true, ranks_))};
  }

 private:
  static ScheduleShape shape_of(Operation operation, const ScheduleOptions& options) {
    const std::uint32_t ranks = rank_count(options);
    return {.operation = operation,
            .algorithm = "dissemination",
            .ranks = options.layout.ranks(),
            .channels = options.layout.channels(),
            .root = options.root,
            .chunk_count = 1,
            .lanes = ranks,
            .connections = doubling_rounds(ranks) * ranks};
  }

  std::uint32_t ranks_;
  std::uint32_t rounds_;
};

}  // namespace

constexpr AlgorithmRow kDissemination{.name = "dissemination",
                                      .operations = {Operation::Barrier},
                                      .build = build_schedule<Dissemination>};

}  // namespace trainyard
