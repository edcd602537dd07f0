// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_caches.h"

#include <utility>

namespace trainyard {

MpiCaches::MpiCaches(const Schedule& schedule, Bytes size,
                     const std::function<bool(const Step& step)>& is_in_place)
    : schedule_(schedule), chunking_(schedule.shape(), size), chunks_(schedule.shape().lanes) {
  for (std::uint32_t rank = 0; rank < chunks_.size(); ++rank) {
    const std::uint64_t steps = schedule.step_count(LaneId(rank));
    for (std::uint64_t index = 0; index < steps; ++index) {
      const Step step = schedule.step(LaneId(rank), index);
      if (step.kind != StepKind::Send) {
        write(rank, step.chunks);
      } else if (is_in_place(step)) {
        read(rank, step.chunks);
      }
    }
    for (auto& [chunk, state] : chunks_[rank]) {
      state.is_written = false;
    }
  }
}

Bytes MpiCaches::read(std::uint32_t rank, ChunkRange entries) {
  Bytes written;
  for (std::uint32_t i = 0; i < entries.count; ++i) {
    const std::uint32_t chunk = schedule_.chunk_at(entries.first + i);
    State& state = chunks_[rank][chunk];
    state.is_read = true;
    written = state.is_written ? written + size_of(chunk) : written;
  }
  return written;
}

Bytes MpiCaches::write_one(std::uint32_t rank, std::uint32_t chunk) {
  const auto found = chunks_[rank].find(chunk);
  if (found == chunks_[rank].end()) {
    return {};
  }
  found->second.is_written = true;
  return std::exchange(found->second.is_read, false) ? size_of(chunk) : Bytes();
}

Bytes MpiCaches::write(std::uint32_t rank, ChunkRange entries) {
  Bytes had;
  for (std::uint32_t i = 0; i < entries.count && !chunks_[rank].empty(); ++i) {
    had = had + write_one(rank, schedule_.chunk_at(entries.first + i));
  }
  return had;
}

Bytes MpiCaches::copy(std::uint32_t rank, ChunkRange chunks) {
  Bytes had;
  for (std::uint32_t i = 0; i < chunks.count && !chunks_[rank].empty(); ++i) {
    had = had + write_one(rank, chunks.first + i);
  }
  return had;
}

}  // namespace trainyard
