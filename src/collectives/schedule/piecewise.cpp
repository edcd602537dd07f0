// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/piecewise.h"

namespace trainyard {

namespace {

class PiecewiseSchedule final : public Schedule {
 public:
  PiecewiseSchedule(const ScheduleShape& shape, std::uint32_t pieces,
                    std::uint32_t chunks_per_piece, std::vector<StoredSchedule::Lane> lanes,
                    std::vector<ScheduleConnection> connections)
      : Schedule(shape),
        pieces_(pieces),
        chunks_per_piece_(chunks_per_piece),
        lanes_(std::move(lanes)),
        connections_(std::move(connections)) {}

  [[nodiscard]] RankId lane_rank(LaneId lane) const override { return lanes_[lane.value()].rank; }
  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return std::uint64_t{pieces_} * lanes_[lane.value()].steps.size();
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    const std::vector<Step>& steps = lanes_[lane.value()].steps;
    Step step = steps[index % steps.size()];
    step.chunks.first += static_cast<std::uint32_t>(index / steps.size()) * chunks_per_piece_;
    return step;
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    return connections_[index];
  }

 private:
  std::uint32_t pieces_;
  std::uint32_t chunks_per_piece_;
  std::vector<StoredSchedule::Lane> lanes_;
  std::vector<ScheduleConnection> connections_;
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
  return std::make_unique<PiecewiseSchedule>(shape_, pieces_, chunks_per_piece_, std::move(lanes_),
                                             std::move(connections_));
}

}  // namespace trainyard
