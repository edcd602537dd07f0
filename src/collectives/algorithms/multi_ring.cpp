// SPDX-License-Identifier: Apache-2.0
// Rings along the dimensions of a grid, one dimension after the other.
//
// Rank r has the coordinates x_0, x_1, ... on a grid of d_0 x d_1 x ... ranks, the first varying
// fastest; on servers the grid is (ranks of a server) x (servers), the 2D torus of large
// all_reduces. reduce_scatter: in the ring along the first dimension each rank reduces the d_0-th
// part of the data, then along the second the d_1-th part of that, and so on; all_gather is the
// same backwards, all_reduce both. The steps are as few as the dimensions are long, the bytes those
// of one ring over all ranks. With latency a and bandwidth B on all links, D_i = d_0 ... d_i,
//   reduce_scatter, all_gather  the sum over i of (d_i - 1) (a + t(S/D_i)); all_reduce twice that.
// On a torus `rotate_dimensions` gives every channel its own first dimension and way round, so that
// 2n channels use all 2n links of a switch at once.
//
// Mikami et al., "Massively distributed SGD: ImageNet/ResNet-50 training in a flash",
// arXiv:1811.05233 (2D torus). Jain, Sabharwal, "Optimal bucket algorithms for large MPI
// collectives on torus interconnects", ICS 2010 (any number of dimensions).
#include <functional>
#include <numeric>

#include "collectives/algorithms/algorithms.h"

namespace trainyard {

namespace {

std::vector<std::uint32_t> dimensions_of(const ScheduleOptions& options) {
  std::vector<std::uint32_t> dimensions(options.dimensions.begin(), options.dimensions.end());
  const std::uint32_t ranks = rank_count(options);
  if (dimensions.empty()) {
    const auto local = static_cast<std::uint32_t>(options.layout.max_ranks_per_node());
    const auto nodes = static_cast<std::uint32_t>(options.layout.nodes());
    // Servers that differ are one ring.
    dimensions = local * nodes == ranks ? std::vector{local, nodes} : std::vector{ranks};
  }
  CHECK(std::accumulate(dimensions.begin(), dimensions.end(), 1U, std::multiplies<>()) == ranks,
        "the ranks do not fill the grid");
  return dimensions;
}

// Chunk channel * N + block, named for its rank. Entries list the blocks of a channel by
// coordinate, that of the first dimension of the channel most significant: what a rank still works
// on after i dimensions is a range. Connection (channel * n + stage) * N + source, to the next of
// the ring.
class MultiRing final : public ChannelSchedule {
 public:
  MultiRing(Operation operation, const ScheduleOptions& options)
      : MultiRing(operation, options, dimensions_of(options)) {}

  [[nodiscard]] std::uint64_t step_count(LaneId /*lane*/) const override { return steps_; }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::uint32_t rank = lane.value() % ranks();
    const std::uint32_t channel = lane.value() / ranks();
    const Ways& ways = ways_[channel % ways_.size()];
    auto left = static_cast<std::uint32_t>(index);
    // Reduces along the stages in their order, then gathers along them backwards.
    const auto stages = static_cast<std::uint32_t>(ways.stages.size());
    for (std::uint32_t turn = reduces_ ? 0 : stages; turn < 2 * stages; ++turn) {
      const std::uint32_t stage = turn < stages ? turn : 2 * stages - 1 - turn;
      const std::uint32_t steps = 2 * (ways.stages[stage].length - 1);
      if (left < steps) {
        return ring_step({.channel = channel, .rank = rank, .stage = stage}, left, turn < stages);
      }
      left -= steps;
    }
    CHECK(false, "a step beyond the end");
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    const std::uint32_t source = index % ranks();
    const auto stages = static_cast<std::uint32_t>(ways_.front().stages.size());
    const Ways& ways = ways_[index / ranks() / stages % ways_.size()];
    const Stage& stage = ways.stages[index / ranks() % stages];
    const std::uint32_t here = coordinate(source, stage);
    const std::uint32_t step = ways.backwards ? stage.length - 1 : 1;
    return {.source = RankId(source),
            .target = RankId(moved(source, stage, (here + step) % stage.length))};
  }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    const std::uint32_t channel = entry / ranks();
    std::uint32_t left = entry % ranks();
    std::uint32_t block = 0;
    for (const Stage& stage : ways_[channel % ways_.size()].stages) {
      block += left / stage.blocks * stage.stride;
      left %= stage.blocks;
    }
    return channel * ranks() + block;
  }

 private:
  struct Stage {
    std::uint32_t length;  // Ranks along the dimension.
    std::uint32_t stride;  // Distance of ranks that are neighbours in it.
    std::uint32_t blocks;  // Blocks that a message of this stage carries.
  };
  struct Ways {
    std::vector<Stage> stages;
    bool backwards = false;
  };
  struct Place {
    std::uint32_t channel;
    std::uint32_t rank;
    std::uint32_t stage;
  };

  MultiRing(Operation operation, const ScheduleOptions& options,
            const std::vector<std::uint32_t>& dimensions)
      : ChannelSchedule(
            "multi-ring", operation, options,
            {.chunks = rank_count(options),
             .connections = static_cast<std::uint32_t>(dimensions.size()) * rank_count(options),
             .entries = rank_count(options)}),
        reduces_(operation != Operation::AllGather) {
    const std::size_t turns = options.rotate_dimensions ? 2 * dimensions.size() : 1;
    for (std::size_t turn = 0; turn < turns; ++turn) {
      ways_.push_back(ways_from(dimensions, turn % dimensions.size(), turn >= dimensions.size()));
    }
    for (const std::uint32_t length : dimensions) {
      steps_ += std::uint64_t{2} * (length - 1);
    }
    steps_ *= operation == Operation::AllReduce ? 2 : 1;
  }

  static Ways ways_from(const std::vector<std::uint32_t>& dimensions, std::size_t first,
                        bool backwards) {
    Ways ways{.stages = {}, .backwards = backwards};
    std::vector<std::uint32_t> strides{1};
    for (const std::uint32_t length : dimensions) {
      strides.push_back(strides.back() * length);
    }
    std::uint32_t blocks = strides.back();
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      const std::size_t dimension = (first + i) % dimensions.size();
      blocks /= dimensions[dimension];
      ways.stages.push_back(
          {.length = dimensions[dimension], .stride = strides[dimension], .blocks = blocks});
    }
    return ways;
  }

  [[nodiscard]] static std::uint32_t coordinate(std::uint32_t rank, const Stage& stage) {
    return rank / stage.stride % stage.length;
  }
  // The rank with another coordinate in this dimension.
  [[nodiscard]] static std::uint32_t moved(std::uint32_t rank, const Stage& stage,
                                           std::uint32_t to) {
    return rank - coordinate(rank, stage) * stage.stride + to * stage.stride;
  }

  // In the ring along a dimension: position p (counted the way round) reduces part p - 1 - k away
  // in round k and is left with its own, and gathers the other way: as in ring.cpp.
  [[nodiscard]] Step ring_step(const Place& at, std::uint32_t index, bool reduces) const {
    const Ways& ways = ways_[at.channel % ways_.size()];
    const Stage& stage = ways.stages[at.stage];
    const std::uint32_t round = index / 2;
    const bool sends = index % 2 == 0;
    const std::uint32_t here = coordinate(at.rank, stage);
    const std::uint32_t behind = (reduces ? 1 : 0) + round + (sends ? 0 : 1);
    const auto back = [&](std::uint32_t hops) {
      return ways.backwards ? (here + hops) % stage.length
                            : (here + 2 * stage.length - hops) % stage.length;
    };
    std::uint32_t first = at.channel * ranks();
    for (std::uint32_t before = 0; before < at.stage; ++before) {
      first += coordinate(at.rank, ways.stages[before]) * ways.stages[before].blocks;
    }
    first += back(behind) * stage.blocks;
    const std::uint32_t source = sends ? at.rank : moved(at.rank, stage, back(1));
    const auto stages = static_cast<std::uint32_t>(ways.stages.size());
    return {.kind = sends     ? StepKind::Send
                    : reduces ? StepKind::Reduce
                              : StepKind::Receive,
            .connection = (at.channel * stages + at.stage) * ranks() + source,
            .chunks = {.first = first, .count = stage.blocks}};
  }

  bool reduces_;
  std::uint64_t steps_ = 0;
  std::vector<Ways> ways_;  // Channels take them in turn.
};

}  // namespace

constexpr AlgorithmRow kMultiRing{
    .name = "multi-ring",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter},
    .build = build_schedule<MultiRing>,
    .need = ClusterNeed::Grid};

}  // namespace trainyard
