// SPDX-License-Identifier: Apache-2.0
// A schedule that is written out step by step, with a listing of chunks.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace trainyard {

class ListedSchedule final : public StoredSchedule {
 public:
  // `shape.entries` is the length of the listing.
  ListedSchedule(ScheduleShape shape, std::vector<Lane> lanes,
                 std::vector<ScheduleConnection> connections, std::vector<std::uint32_t> listing)
      : StoredSchedule(std::move(shape), std::move(lanes), std::move(connections)),
        listing_(std::move(listing)) {}

  [[nodiscard]] std::uint32_t chunk_at(std::uint32_t entry) const override {
    return listing_[entry];
  }

 private:
  std::vector<std::uint32_t> listing_;
};

}  // namespace trainyard
