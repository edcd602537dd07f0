// SPDX-License-Identifier: Apache-2.0
#include "collectives/hccl/written_schedule.h"

#include "collectives/schedule/listed_schedule.h"
#include "sim/check.h"

namespace trainyard {

ScheduleWriter::ScheduleWriter(std::uint32_t ranks) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    lanes_.push_back({.rank = RankId(rank), .steps = {}});
  }
}

ChunkRange ScheduleWriter::listed(const Chunks& chunks) {
  const auto [entry, fresh] = known_.try_emplace(chunks);
  if (fresh) {
    entry->second = {.first = static_cast<std::uint32_t>(listing_.size()),
                     .count = static_cast<std::uint32_t>(chunks.size())};
    listing_.insert(listing_.end(), chunks.begin(), chunks.end());
  }
  return entry->second;
}

std::uint32_t ScheduleWriter::connection(Rank from, Rank to) {
  const auto [entry, fresh] =
      numbers_.try_emplace({from, to}, static_cast<std::uint32_t>(connections_.size()));
  if (fresh) {
    connections_.push_back({.source = RankId(from), .target = RankId(to)});
  }
  return entry->second;
}

void ScheduleWriter::send(Rank from, Rank to, const Chunks& chunks) {
  lanes_[from].steps.push_back(
      {.kind = StepKind::Send, .connection = connection(from, to), .chunks = listed(chunks)});
}

void ScheduleWriter::take(StepKind kind, Rank from, Rank to, const Chunks& chunks) {
  lanes_[to].steps.push_back(
      {.kind = kind, .connection = connection(from, to), .chunks = listed(chunks)});
}

void ScheduleWriter::embed(const Schedule& inner, const std::vector<Rank>& ranks,
                           const Blocks& blocks) {
  CHECK(inner.shape().lanes == ranks.size(), "a lane for each rank");
  for (std::uint32_t lane = 0; lane < inner.shape().lanes; ++lane) {
    const std::uint64_t steps = inner.step_count(LaneId(lane));
    for (std::uint64_t index = 0; index < steps; ++index) {
      const Step step = inner.step(LaneId(lane), index);
      CHECK(is_message(step.kind), "a step that is a message");
      Chunks chunks;
      for (std::uint32_t i = 0; i < step.chunks.count; ++i) {
        const Chunks& block = blocks[inner.chunk_at(step.chunks.first + i)];
        chunks.insert(chunks.end(), block.begin(), block.end());
      }
      const ScheduleConnection ends = inner.connection(step.connection);
      const Rank from = ranks[ends.source.value()];
      const Rank to = ranks[ends.target.value()];
      if (step.kind == StepKind::Send) {
        send(from, to, chunks);
      } else {
        take(step.kind, from, to, chunks);
      }
    }
  }
}

std::unique_ptr<Schedule> ScheduleWriter::finish(Operation operation, std::string name,
                                                 std::uint32_t chunk_count, Rank root) {
  ScheduleShape shape{.operation = operation,
                      .algorithm = std::move(name),
                      .ranks = static_cast<int>(lanes_.size()),
                      .root = RankId(root),
                      .chunk_count = chunk_count,
                      .entries = static_cast<std::uint32_t>(listing_.size()),
                      .lanes = static_cast<std::uint32_t>(lanes_.size()),
                      .connections = static_cast<std::uint32_t>(connections_.size())};
  return std::make_unique<ListedSchedule>(std::move(shape), std::move(lanes_),
                                          std::move(connections_), std::move(listing_));
}

}  // namespace trainyard
