// SPDX-License-Identifier: Apache-2.0
// NVLS: the NVSwitch adds up and multicasts (NVLink SHARP). All ranks are on one switch, which is
// the schedule's only relay.
//
// The traffic is that of NCCL's kernel (src/device/all_reduce.h, RunWorkColl of NVLS), which knows
// two instructions. multimem.ld_reduce makes the switch fetch the same address from every GPU, that
// of the caller among them, and hand the caller the sum; multimem.st makes it write to every GPU.
// Every rank is the head of one block of the data. For each piece, of s bytes:
//   up    every rank sends the whole piece; the switch adds up and gives each head its block;
//   down  each head sends its block; the switch sends the whole piece to every rank.
// all_reduce is up, then down; reduce_scatter and all_gather are one of the two; broadcast and
// reduce as well, with the root as the head of everything. A port carries, of S bytes in all:
//   all_reduce      up S + S/n     down S/n + S
//   reduce_scatter  up S           down S/n
//   all_gather      up S/n         down S
//   broadcast       up S at the root alone, down S everywhere; reduce the reverse.
// A multicast to n ports is n messages, one for each of them; a block on its way from all GPUs to
// one head is a part of the piece's messages. Commands, answers and the counters by which the GPUs
// wait for one another cost nothing.
//
// On an idle switch, with a and b the latency to the switch and from it, s = S/P, U = s/B, u = U/n:
//   reduce_scatter, all_gather  P U + u + a + b
//   broadcast, reduce           (P + 1) U + a + b
//   all_reduce                  P = 1: 2 (U + u + a + b)
//                               P > 2: (P + 1) U + (P + 3) u + 2 (a + b), if U >= 3 u + a + b:
//                               every port is shared by one message of each kind at a time.
#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/piecewise.h"

namespace trainyard {

namespace {

class NvlsBuilder {
 public:
  NvlsBuilder(Operation operation, const ScheduleOptions& options)
      : ranks_(static_cast<std::uint32_t>(options.layout.ranks())),
        relay_(ranks_),
        adds_up_(operation != Operation::AllGather && operation != Operation::Broadcast),
        multicasts_(operation != Operation::ReduceScatter && operation != Operation::Reduce) {
    const bool rooted = operation == Operation::Broadcast || operation == Operation::Reduce;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      if (!rooted || RankId(rank) == options.root) {
        heads_.emplace_back(rank);
      }
    }
  }

  // One for each head: its block.
  [[nodiscard]] std::uint32_t chunks_per_channel() const {
    return static_cast<std::uint32_t>(heads_.size());
  }

  // `first` is the first of the channel's chunks.
  void add_channel(PiecewiseBuilder& builder, std::uint32_t first) const {
    const ChunkRange whole{.first = first, .count = chunks_per_channel()};
    std::vector<std::vector<Step>> head_steps(heads_.size());
    if (adds_up_) {
      add_up(builder, whole, head_steps);
    }
    if (multicasts_) {
      add_down(builder, whole, head_steps);
    }
    for (std::size_t head = 0; head < heads_.size(); ++head) {
      builder.add_lane(heads_[head], std::move(head_steps[head]));
    }
  }

 private:
  // From every rank to the switch; the sums to the heads.
  void add_up(PiecewiseBuilder& builder, ChunkRange whole,
              std::vector<std::vector<Step>>& head_steps) const {
    std::vector<Step> relay;
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t data = builder.connect(RankId(rank), relay_);
      builder.add_lane(RankId(rank),
                       {{.kind = StepKind::Send, .connection = data, .chunks = whole}});
      relay.push_back({.kind = rank == 0 ? StepKind::Receive : StepKind::Reduce,
                       .connection = data,
                       .chunks = whole});
    }
    for (std::uint32_t head = 0; head < heads_.size(); ++head) {
      const ChunkRange block{.first = whole.first + head, .count = 1};
      const std::uint32_t sum = builder.connect(relay_, heads_[head]);
      relay.push_back({.kind = StepKind::Send, .connection = sum, .chunks = block});
      head_steps[head].push_back({.kind = StepKind::Receive, .connection = sum, .chunks = block});
    }
    builder.add_lane(relay_, std::move(relay));
  }

  // From the heads to the switch; everything to every rank.
  void add_down(PiecewiseBuilder& builder, ChunkRange whole,
                std::vector<std::vector<Step>>& head_steps) const {
    std::vector<Step> relay;
    for (std::uint32_t head = 0; head < heads_.size(); ++head) {
      const ChunkRange block{.first = whole.first + head, .count = 1};
      const std::uint32_t store = builder.connect(heads_[head], relay_);
      head_steps[head].push_back({.kind = StepKind::Send, .connection = store, .chunks = block});
      relay.push_back({.kind = StepKind::Receive, .connection = store, .chunks = block});
    }
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t copy = builder.connect(relay_, RankId(rank));
      relay.push_back({.kind = StepKind::Send, .connection = copy, .chunks = whole});
      builder.add_lane(RankId(rank),
                       {{.kind = StepKind::Receive, .connection = copy, .chunks = whole}});
    }
    builder.add_lane(relay_, std::move(relay));
  }

  std::uint32_t ranks_;
  RankId relay_;
  bool adds_up_;
  bool multicasts_;
  std::vector<RankId> heads_;
};

std::unique_ptr<Schedule> build_nvls(Operation operation, const ScheduleOptions& options) {
  const NvlsBuilder channel(operation, options);
  const auto channels = static_cast<std::uint32_t>(options.layout.channels());
  PiecewiseBuilder builder({.operation = operation,
                            .algorithm = "nvls",
                            .ranks = options.layout.ranks(),
                            .relays = 1,
                            .channels = options.layout.channels(),
                            .root = options.root},
                           static_cast<std::uint32_t>(options.pieces),
                           channels * channel.chunks_per_channel());
  // A single rank has nobody to exchange with.
  for (std::uint32_t index = 0; index < channels && options.layout.ranks() > 1; ++index) {
    channel.add_channel(builder, index * channel.chunks_per_channel());
  }
  return std::move(builder).build();
}

}  // namespace

constexpr AlgorithmRow kNvls{
    .name = "nvls",
    .operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                   Operation::Broadcast, Operation::Reduce},
    .build = build_nvls,
    .need = ClusterNeed::OneReducingSwitch,
    .stages = [](Operation operation, const RankLayout& /*layout*/) -> std::int64_t {
      return operation == Operation::AllReduce ? 2 : 1;  // To the switch and back.
    }};

}  // namespace trainyard
