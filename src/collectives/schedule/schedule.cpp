// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace trainyard {

std::string participant_name(const ScheduleShape& shape, RankId id) {
  const auto ranks = static_cast<std::uint32_t>(shape.ranks);
  return id.value() < ranks ? fmt::format("rank {}", id.value())
                            : fmt::format("switch {}", id.value() - ranks);
}

StoredSchedule::StoredSchedule(ScheduleShape shape, std::vector<Lane> lanes,
                               std::vector<ScheduleConnection> connections, std::uint32_t pieces)
    : Schedule(std::move(shape)),
      lanes_(std::move(lanes)),
      connections_(std::move(connections)),
      pieces_(pieces) {
  CHECK(lanes_.size() == this->shape().lanes, "the number of lanes differs from the shape");
  CHECK(connections_.size() == this->shape().connections,
        "the number of connections differs from the shape");
}

Step StoredSchedule::step(LaneId lane, std::uint64_t index) const {
  const std::vector<Step>& steps = lanes_[lane.value()].steps;
  Step step = steps[index % steps.size()];
  const std::uint64_t piece = index / steps.size();
  step.chunks.first += static_cast<std::uint32_t>(piece * (shape().chunk_count / pieces_));
  return step;
}

Chunking::Chunking(const ScheduleShape& shape, Bytes size)
    : cuts_(shape.chunk_cuts),
      total_(size.count()),
      chunks_(std::max<std::int64_t>(1, shape.chunk_count)) {
  // nccl-tests gives the bytes of one rank for an all-to-all and for sendrecv, where every rank has
  // other data.
  if (shape.operation == Operation::AllToAll || shape.operation == Operation::AllToAllV ||
      shape.operation == Operation::SendReceive) {
    total_ = (size * shape.ranks).count();
  } else if (shape.operation == Operation::Barrier) {
    total_ = 0;
  }
  if (shape.size_chunks > 0) {
    const std::int64_t pieces = shape.size_chunks;
    total_ = (size.count() + pieces - 1) / pieces * chunks_;
  }
  quotient_ = total_ / chunks_;
  remainder_ = cuts_.empty() ? total_ % chunks_ : 1;
}

std::int64_t Chunking::uneven_cut(std::uint64_t chunk) const {
  if (!cuts_.empty()) {
    return cuts_[chunk];
  }
  const auto product = static_cast<__int128>(total_) * static_cast<__int128>(chunk);
  return static_cast<std::int64_t>(product / chunks_);
}

}  // namespace trainyard
