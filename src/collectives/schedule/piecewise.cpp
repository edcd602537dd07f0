// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/piecewise.h"

namespace trainyard {

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
  return std::make_unique<StoredSchedule>(std::move(shape_), std::move(lanes_),
                                          std::move(connections_), pieces_);
}

}  // namespace trainyard
