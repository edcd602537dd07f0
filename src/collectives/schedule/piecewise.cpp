// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/piecewise.h"

namespace trainyard {

namespace {

class PiecewiseSchedule final : public StoredSchedule {
 public:
  PiecewiseSchedule(ScheduleShape shape, std::uint32_t pieces, std::uint32_t chunks_per_piece,
                    std::vector<Lane> lanes, std::vector<ScheduleConnection> connections)
      : StoredSchedule(std::move(shape), std::move(lanes), std::move(connections)),
        pieces_(pieces),
        chunks_per_piece_(chunks_per_piece) {}

  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return pieces_ * StoredSchedule::step_count(lane);
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::vector<Step>& of_piece = steps(lane);
    Step step = of_piece[index % of_piece.size()];
    step.chunks.first += static_cast<std::uint32_t>(index / of_piece.size()) * chunks_per_piece_;
    return step;
  }

 private:
  std::uint32_t pieces_;
  std::uint32_t chunks_per_piece_;
};

}  // namespace

std::uint32_t PiecewiseBuilder::connect(RankId source, RankId target,
                                        std::optional<std::uint32_t> flow_label) {
  connections_.push_back({.source = source, .target = target, .flow_label = flow_label});
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

void PiecewiseBuilder::add_lane(RankId rank, std::vector<Step> steps) {
  lanes_.push_back({.rank = rank, .steps = std::move(steps)});
}

std::unique_ptr<Schedule> PiecewiseBuilder::build() && {
  shape_.chunk_count = pieces_ * chunks_per_piece_;
  shape_.lanes = static_cast<std::uint32_t>(lanes_.size());
  shape_.connections = static_cast<std::uint32_t>(connections_.size());
  return std::make_unique<PiecewiseSchedule>(std::move(shape_), pieces_, chunks_per_piece_,
                                             std::move(lanes_), std::move(connections_));
}

}  // namespace trainyard
