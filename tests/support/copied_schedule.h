// SPDX-License-Identifier: Apache-2.0
// A copy of any schedule, written out step by step, for tests that change one.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace trainyard {

class CopiedSchedule final : public Schedule {
 public:
  using Lane = StoredSchedule::Lane;

  explicit CopiedSchedule(const Schedule& other) : Schedule(other.shape()) {
    for (std::uint32_t lane = 0; lane < shape().lanes; ++lane) {
      Lane copy{.rank = other.lane_rank(LaneId(lane)), .steps = {}};
      for (std::uint64_t index = 0; index < other.step_count(LaneId(lane)); ++index) {
        copy.steps.push_back(other.step(LaneId(lane), index));
      }
      lanes_.push_back(std::move(copy));
    }
    for (std::uint32_t index = 0; index < shape().connections; ++index) {
      connections_.push_back(other.connection(index));
    }
    for (std::uint32_t entry = 0; entry < shape().entries; ++entry) {
      listing_.push_back(other.chunk_at(entry));
    }
  }

  [[nodiscard]] RankId lane_rank(LaneId lane) const override { return lanes_[lane.value()].rank; }
  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return lanes_[lane.value()].steps.size();
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override {
    return lanes_[lane.value()].steps[index];
  }
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    return connections_[index];
  }
  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    return listing_.empty() ? entry : listing_[entry];
  }

  [[nodiscard]] std::vector<Lane>& lanes() { return lanes_; }
  [[nodiscard]] std::vector<ScheduleConnection>& connections() { return connections_; }

 private:
  std::vector<Lane> lanes_;
  std::vector<ScheduleConnection> connections_;
  std::vector<std::uint32_t> listing_;
};

}  // namespace trainyard
