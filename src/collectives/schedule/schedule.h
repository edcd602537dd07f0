// SPDX-License-Identifier: Apache-2.0
// A collective as data: what every rank sends, receives and reduces, in which order.
//
// A schedule has lanes and connections. A lane is a sequential program of one rank (in NCCL: a
// channel's thread block); its steps are generated on demand from (lane, index), so a ring of 4,096
// ranks with 33 million transfers takes no memory. A connection is a FIFO of messages from one rank
// to another; the n-th receive on it takes the n-th message, so sends and receives are paired by
// construction and never matched by tag. Both are numbered densely from zero.
//
// Steps of a lane:
//   Send     hands the chunks, as they are now, to the connection and continues at once;
//   Receive  waits for the next message of the connection and stores it;
//   Reduce   the same, but adds it to what the rank holds;
//   Wait     waits until another lane of the same rank has taken so many steps;
//   Copy     writes what the rank holds in some chunks over others of its own, in no time;
//   Add      the same, but adds it to what they hold.
// Order within a lane, messages between lanes and waits are all dependencies there are: together, a
// DAG. The last three are for imported schedules; the algorithms here need none of them.
//
// Beside its ranks a schedule may have relays: switches that add up and multicast in the network.
// They are numbered after the ranks, relay i as RankId(ranks + i), and have lanes and connections
// like ranks, but no data of the operation before or after.
//
// The data of a collective are chunk_count chunks, named alike on all ranks. Which ranks hold
// which chunks before and after is the meaning of the operation (semantics.h), which also proves
// schedules. A message is a range of chunks; where an algorithm packs chunks that are not next to
// each other into one message (Bruck's alltoall), the schedule has a listing of chunks and a
// message is a range of that. Imported schedules have chunks that are places in the buffers of a
// rank, so that data may change their place on the way; what a place holds has a number
// (datum_before).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/operation.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

enum class StepKind : std::uint8_t { Send, Receive, Reduce, Wait, Copy, Add };

struct ChunkRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  friend bool operator==(const ChunkRange&, const ChunkRange&) = default;
};

struct Step {
  StepKind kind = StepKind::Send;
  // For Wait it is the lane, and chunks.first the steps that this has taken; for Copy and Add the
  // first of the chunks that are read, chunks being those that are written.
  std::uint32_t connection = 0;
  ChunkRange chunks;  // Entries, if the schedule has a listing.
};

[[nodiscard]] constexpr bool is_message(StepKind kind) {
  return kind == StepKind::Send || kind == StepKind::Receive || kind == StepKind::Reduce;
}

struct ScheduleConnection {
  RankId source;
  RankId target;
  // For the network (ConnectionSpec); if there is none, the number of the connection.
  std::optional<std::uint32_t> flow_label = {};
};

// The traits that every schedule has.
struct ScheduleShape {
  Operation operation = Operation::AllReduce;
  std::string algorithm;
  int ranks = 0;
  int relays = 0;
  int channels = 1;
  RankId root;  // For broadcast, reduce, scatter, gather.
  // A message starts only when its receiver waits for it, as large messages between two ranks that
  // exchange do in MPI. Ranks that are ahead of their partners then do not take bandwidth from
  // those that are behind.
  bool rendezvous = false;
  std::uint32_t chunk_count = 0;
  std::uint32_t entries = 0;  // Length of the listing; 0: there is none.
  // 0: chunks are named alike on all ranks, and the size is cut into chunk_count of them. Otherwise
  // chunks are places, each of the size over this number, rounded up to whole bytes.
  std::uint32_t size_chunks = 0;
  // Where chunks have sizes of their own: chunk i goes from byte [i] to byte [i + 1]. Otherwise
  // empty, and the size of the message is cut evenly.
  std::vector<std::int64_t> chunk_cuts = {};
  std::uint32_t lanes = 0;
  std::uint32_t connections = 0;
  // How many each channel has, where all channels go the same ways; otherwise 0.
  std::uint32_t channel_connections = 0;
};

// "rank 3" or, beyond the ranks, "switch 0": how messages name who takes part.
[[nodiscard]] std::string participant_name(const ScheduleShape& shape, RankId id);

class Schedule {
 public:
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  virtual ~Schedule() = default;

  [[nodiscard]] const ScheduleShape& shape() const { return shape_; }
  [[nodiscard]] virtual RankId lane_rank(LaneId lane) const = 0;
  [[nodiscard]] virtual std::uint64_t step_count(LaneId lane) const = 0;
  // `index` is less than step_count(lane).
  [[nodiscard]] virtual Step step(LaneId lane, std::uint64_t index) const = 0;
  [[nodiscard]] virtual ScheduleConnection connection(std::uint32_t index) const = 0;
  // The chunk of an entry of the listing. The same one may be listed several times.
  [[nodiscard]] virtual std::uint32_t chunk_at(std::uint32_t entry) const { return entry; }
  // Return, where chunks are places, the number of the chunk, in the sense of the operation
  // (semantics.h), that a place holds before, and that it must hold after; none if that does not
  // matter.
  [[nodiscard]] virtual std::optional<std::uint32_t> datum_before(RankId /*rank*/,
                                                                  std::uint32_t chunk) const {
    return chunk;
  }
  [[nodiscard]] virtual std::optional<std::uint32_t> datum_after(RankId /*rank*/,
                                                                 std::uint32_t chunk) const {
    return chunk;
  }
  // "chunk 3": how messages name it.
  [[nodiscard]] virtual std::string chunk_name(std::uint32_t chunk) const {
    return "chunk " + std::to_string(chunk);
  }

 protected:
  explicit Schedule(ScheduleShape shape) : shape_(std::move(shape)) {}

 private:
  ScheduleShape shape_;
};

// A schedule that is written out step by step, for the first of so many pieces: a lane takes these
// steps again for each, every time on chunks that many further as a piece has.
class StoredSchedule : public Schedule {
 public:
  struct Lane {
    RankId rank;
    std::vector<Step> steps;
  };

  StoredSchedule(ScheduleShape shape, std::vector<Lane> lanes,
                 std::vector<ScheduleConnection> connections, std::uint32_t pieces = 1);

  [[nodiscard]] RankId lane_rank(LaneId lane) const override { return lanes_[lane.value()].rank; }
  [[nodiscard]] std::uint64_t step_count(LaneId lane) const override {
    return pieces_ * lanes_[lane.value()].steps.size();
  }
  [[nodiscard]] Step step(LaneId lane, std::uint64_t index) const override;
  [[nodiscard]] ScheduleConnection connection(std::uint32_t index) const override {
    return connections_[index];
  }

 private:
  std::vector<Lane> lanes_;
  std::vector<ScheduleConnection> connections_;
  std::uint64_t pieces_;
};

// How the bytes of a message size, in the sense of nccl-tests, are cut into the chunks of a
// schedule. Cuts fall at size * i / chunk_count, rounded down, so that the parts add up exactly;
// with a listing, entry i is as large as chunk i would be. A barrier has no bytes, and chunks that
// have sizes of their own keep them.
class Chunking {
 public:
  Chunking(const ScheduleShape& shape, Bytes size);
  [[nodiscard]] Bytes bytes(ChunkRange range) const {
    return Bytes(cut(range.first + range.count) - cut(range.first));
  }

 private:
  [[nodiscard]] std::int64_t cut(std::uint64_t chunk) const {
    // The usual case is an even division, which needs no 128 bits.
    return remainder_ == 0 ? quotient_ * static_cast<std::int64_t>(chunk) : uneven_cut(chunk);
  }
  [[nodiscard]] std::int64_t uneven_cut(std::uint64_t chunk) const;

  std::vector<std::int64_t> cuts_;  // Those of the shape.
  std::int64_t total_;              // Over all distinct chunks.
  std::int64_t chunks_;
  std::int64_t quotient_;
  std::int64_t remainder_;
};

}  // namespace trainyard
