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

ScheduleShape shape_of(Operation operation, std::string algorithm, const ScheduleOptions& options,
                       std::uint32_t units) {
  const bool algorithm_is_pairwise = algorithm == "pairwise";
  const auto channels = static_cast<std::uint32_t>(options.layout.channels());
  const auto ranks = static_cast<std::uint32_t>(options.layout.ranks());
  return {.operation = operation,
          .algorithm = std::move(algorithm),
          .ranks = options.layout.ranks(),
          .channels = options.layout.channels(),
          .root = options.root,
          .rendezvous = algorithm_is_pairwise,
          .chunk_count = channels * units,
          .lanes = channels * ranks,
          .connections = channels * units};
}

// Chunk and connection (channel * N + source) * N + target.
class AllToAll final : public Schedule {
 public:
  AllToAll(const ScheduleOptions& options, bool pairwise)
      : Schedule(shape_of(Operation::AllToAll, pairwise ? "pairwise" : "direct", options,
                          static_cast<std::uint32_t>(options.layout.ranks()) *
                              static_cast<std::uint32_t>(options.layout.ranks()))),
        ranks_(static_cast<std::uint32_t>(options.layout.ranks())),
        pairwise_(pairwise) {}

  [[nodiscard]] RankId lane_rank(LaneId lane) const override {
    return RankId(lane.value() % ranks_);
  }
  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override {
    return std::uint64_t{2} * (ranks_ - 1);
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks_;
    const std::uint32_t first = lane.value() / ranks_ * ranks_;
    const auto step = static_cast<std::uint32_t>(index);
    const bool sends = pairwise_ ? step % 2 == 0 : step < ranks_ - 1;
    const std::uint32_t round = 1 + (pairwise_ ? step / 2 : (sends ? step : step - (ranks_ - 1)));
    const std::uint32_t source = sends ? rank : (rank + ranks_ - round) % ranks_;
    const std::uint32_t target = sends ? (rank + round) % ranks_ : rank;
    const std::uint32_t unit = (first + source) * ranks_ + target;
    return {.kind = sends ? StepKind::Send : StepKind::Receive,
            .connection = unit,
            .chunks = {.first = unit, .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    return {.source = RankId(index / ranks_ % ranks_), .target = RankId(index % ranks_)};
  }

 private:
  std::uint32_t ranks_;
  bool pairwise_;
};

// Chunks and connections as above, with the bytes of the matrix. What a rank does is written out,
// since no formula says which pairs are left out.
class AllToAllV final : public Schedule {
 public:
  AllToAllV(const ScheduleOptions& options, bool pairwise)
      : Schedule(shape_with_cuts(options, pairwise)),
        ranks_(static_cast<std::uint32_t>(options.layout.ranks())) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      programs_.push_back(program(options.matrix, rank, pairwise));
    }
  }

  [[nodiscard]] RankId lane_rank(LaneId lane) const override {
    return RankId(lane.value() % ranks_);
  }
  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return programs_[lane.value() % ranks_].size();
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    Step step = programs_[lane.value() % ranks_][index];
    step.connection += lane.value() / ranks_ * ranks_ * ranks_;
    step.chunks.first = step.connection;
    return step;
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    return {.source = RankId(index / ranks_ % ranks_), .target = RankId(index % ranks_)};
  }

 private:
  static ScheduleShape shape_with_cuts(const ScheduleOptions& options, bool pairwise) {
    const auto ranks = static_cast<std::uint32_t>(options.layout.ranks());
    ScheduleShape shape =
        shape_of(Operation::AllToAllV, pairwise ? "pairwise" : "direct", options, ranks * ranks);
    if (options.matrix != nullptr) {
      shape.chunk_cuts = {0};
      for (int channel = 0; channel < shape.channels; ++channel) {
        for (const std::int64_t bytes : options.matrix->bytes) {
          const std::int64_t share =
              bytes * (channel + 1) / shape.channels - bytes * channel / shape.channels;
          shape.chunk_cuts.push_back(shape.chunk_cuts.back() + share);
        }
      }
    }
    return shape;
  }

  [[nodiscard]] std::vector<Step> program(const TrafficMatrix* matrix, std::uint32_t rank,
                                          bool pairwise) const {
    std::vector<Step> sends;
    std::vector<Step> steps;
    const auto add = [&](std::vector<Step>& to, StepKind kind, std::uint32_t source,
                         std::uint32_t target) {
      const std::uint32_t unit = source * ranks_ + target;
      if (matrix == nullptr || matrix->bytes[unit] > 0) {
        to.push_back({.kind = kind, .connection = unit, .chunks = {.first = unit, .count = 1}});
      }
    };
    for (std::uint32_t round = 1; round < ranks_; ++round) {
      add(pairwise ? steps : sends, StepKind::Send, rank, (rank + round) % ranks_);
      add(steps, StepKind::Receive, (rank + ranks_ - round) % ranks_, rank);
    }
    steps.insert(steps.begin(), sends.begin(), sends.end());
    return steps;
  }

  std::uint32_t ranks_;
  std::vector<std::vector<Step>> programs_;  // One per rank, for channel 0.
};

// sendrecv. Chunk and connection channel * N + source.
class Shift final : public Schedule {
 public:
  explicit Shift(const ScheduleOptions& options)
      : Schedule(shape_of(Operation::SendReceive, "direct", options,
                          static_cast<std::uint32_t>(options.layout.ranks()))),
        ranks_(static_cast<std::uint32_t>(options.layout.ranks())) {}

  [[nodiscard]] RankId lane_rank(LaneId lane) const override {
    return RankId(lane.value() % ranks_);
  }
  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override { return 2; }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks_;
    const std::uint32_t first = lane.value() - rank;
    const std::uint32_t unit = first + (index == 0 ? rank : (rank + ranks_ - 1) % ranks_);
    return {.kind = index == 0 ? StepKind::Send : StepKind::Receive,
            .connection = unit,
            .chunks = {.first = unit, .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t rank = index % ranks_;
    return {.source = RankId(rank), .target = RankId((rank + 1) % ranks_)};
  }

 private:
  std::uint32_t ranks_;
};

// scatter and gather. Chunk and connection channel * N + the rank that is not the root; the one of
// the root itself is not used.
class Star final : public Schedule {
 public:
  Star(Operation operation, const ScheduleOptions& options)
      : Schedule(shape_of(operation, "direct", options,
                          static_cast<std::uint32_t>(options.layout.ranks()))),
        ranks_(static_cast<std::uint32_t>(options.layout.ranks())),
        scatters_(operation == Operation::Scatter) {}

  [[nodiscard]] RankId lane_rank(LaneId lane) const override {
    return RankId(lane.value() % ranks_);
  }
  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return lane_rank(lane) == shape().root ? ranks_ - 1 : 1;
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks_;
    const std::uint32_t first = lane.value() - rank;
    const bool is_root = RankId(rank) == shape().root;
    const std::uint32_t unit =
        first + (is_root ? (rank + 1 + static_cast<std::uint32_t>(index)) % ranks_ : rank);
    return {.kind = is_root == scatters_ ? StepKind::Send : StepKind::Receive,
            .connection = unit,
            .chunks = {.first = unit, .count = 1}};
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const RankId other(index % ranks_);
    return scatters_ ? ScheduleConnection{.source = shape().root, .target = other}
                     : ScheduleConnection{.source = other, .target = shape().root};
  }

 private:
  std::uint32_t ranks_;
  bool scatters_;
};

bool exchanges(Operation operation) {
  return operation == Operation::AllToAll || operation == Operation::AllToAllV;
}

std::unique_ptr<Schedule> build_exchange(Operation operation, const ScheduleOptions& options,
                                         bool in_rounds) {
  if (operation == Operation::AllToAllV) {
    return std::make_unique<AllToAllV>(options, in_rounds);
  }
  return std::make_unique<AllToAll>(options, in_rounds);
}

std::unique_ptr<Schedule> build_pairwise(Operation operation, const ScheduleOptions& options) {
  return build_exchange(operation, options, true);
}

std::unique_ptr<Schedule> build_direct(Operation operation, const ScheduleOptions& options) {
  if (exchanges(operation)) {
    return build_exchange(operation, options, false);
  }
  if (operation == Operation::SendReceive) {
    return std::make_unique<Shift>(options);
  }
  return std::make_unique<Star>(operation, options);
}

std::int64_t direct_partners(Operation operation, const RankLayout& layout) {
  return exchanges(operation) ? layout.ranks() : 4;
}

std::int64_t direct_chunks(Operation operation, const RankLayout& layout) {
  return exchanges(operation) ? layout.ranks() : 1;
}

}  // namespace

constexpr AlgorithmRow kPairwise{.name = "pairwise",
                                 .operations = {Operation::AllToAll, Operation::AllToAllV},
                                 .build = build_pairwise,
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
