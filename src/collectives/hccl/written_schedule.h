// SPDX-License-Identifier: Apache-2.0
// Writes a schedule out message by message, with one lane for each rank, and other schedules into
// it, which a few ranks run among themselves on blocks of chunks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/schedule.h"

namespace trainyard {

class ScheduleWriter {
 public:
  using Rank = std::uint32_t;
  using Chunks = std::vector<std::uint32_t>;
  using Blocks = std::vector<Chunks>;

  explicit ScheduleWriter(std::uint32_t ranks);

  // A message of these chunks, which are one message whether they are next to each other or not.
  void send(Rank from, Rank to, const Chunks& chunks);
  // Takes the next message from `from`, and adds it to what `to` holds or stores it.
  void take(StepKind kind, Rank from, Rank to, const Chunks& chunks);
  // Writes what `inner` does, its rank i being ranks[i] and its chunk i the block blocks[i]. It
  // must have one lane for each rank, and no other steps than messages.
  void embed(const Schedule& inner, const std::vector<Rank>& ranks, const Blocks& blocks);

  // Chunks are numbered from 0 to chunk_count - 1.
  [[nodiscard]] std::unique_ptr<Schedule> finish(Operation operation, std::string name,
                                                 std::uint32_t chunk_count, Rank root = 0);

 private:
  [[nodiscard]] ChunkRange listed(const Chunks& chunks);
  [[nodiscard]] std::uint32_t connection(Rank from, Rank to);

  std::vector<StoredSchedule::Lane> lanes_;
  std::vector<ScheduleConnection> connections_;
  std::map<std::pair<Rank, Rank>, std::uint32_t> numbers_;  // Numbers of connections.
  std::vector<std::uint32_t> listing_;
  std::map<Chunks, ChunkRange> known_;  // Lists of chunks that are in the listing.
};

}  // namespace trainyard
