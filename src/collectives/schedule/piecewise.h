// SPDX-License-Identifier: Apache-2.0
// Schedules whose lanes do the same for each of a row of pieces, written out for the first.
//
// Piece p has the chunks from p * chunks_per_piece on: a lane takes its steps of the first piece
// again and again, every time on chunks that many further. What is stored does not grow with the
// pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace trainyard {

class PiecewiseBuilder {
 public:
  // `shape` as it is to be, but for the numbers of chunks, lanes and connections, which follow.
  PiecewiseBuilder(ScheduleShape shape, std::uint32_t pieces, std::uint32_t chunks_per_piece)
      : shape_(std::move(shape)), pieces_(pieces), chunks_per_piece_(chunks_per_piece) {}

  // The number of the new connection.
  std::uint32_t connect(RankId source, RankId target,
                        std::optional<std::uint32_t> flow_label = std::nullopt);
  // Lanes are numbered in the order of calls. `steps` are those of the first piece.
  void add_lane(RankId rank, std::vector<Step> steps);
  [[nodiscard]] std::unique_ptr<Schedule> build() &&;

 private:
  ScheduleShape shape_;
  std::uint32_t pieces_;
  std::uint32_t chunks_per_piece_;
  std::vector<StoredSchedule::Lane> lanes_;
  std::vector<ScheduleConnection> connections_;
};

}  // namespace trainyard
