// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/semantics.h"

#include <spdlog/fmt/fmt.h>

#include <deque>
#include <vector>

namespace trainyard {

namespace {

using Contributions = std::uint64_t;  // Bit r: the data of rank r; 0: nothing.

std::string name_of(Contributions value) {
  std::string text = "{";
  for (int rank = 0; rank < kMaxProvedRanks; ++rank) {
    if ((value >> rank & 1U) != 0) {
      text += (text.size() > 1 ? ", " : "") + std::to_string(rank);
    }
  }
  return text + "}";
}

// The content of a place at a rank.
struct Value {
  std::uint32_t datum = 0;  // Which chunk of the operation.
  Contributions set = 0;
};

class Prover {
 public:
  explicit Prover(const Schedule& schedule)
      : schedule_(schedule),
        shape_(schedule.shape()),
        ranks_(static_cast<std::uint32_t>(shape_.ranks)),
        participants_(ranks_ + static_cast<std::uint32_t>(shape_.relays)),
        entries_(shape_.entries > 0 ? shape_.entries : shape_.chunk_count),
        everyone_(ranks_ == 64 ? ~Contributions{0} : (Contributions{1} << ranks_) - 1),
        held_(participants_, std::vector<Value>(shape_.chunk_count)),
        queues_(shape_.connections),
        last_sends_(shape_.connections),
        next_(shape_.lanes, 0) {}

  std::optional<Violation> run(bool backwards) {
    for (std::uint32_t chunk = 0; chunk < shape_.chunk_count; ++chunk) {
      for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
        if (const auto datum = schedule_.datum_before(RankId(rank), chunk)) {
          held_[rank][chunk] = {.datum = *datum, .set = before(rank, *datum)};
        }
      }
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t i = 0; i < shape_.lanes && error_.empty(); ++i) {
        moved |= run_lane(LaneId(backwards ? shape_.lanes - 1 - i : i));
      }
      if (!error_.empty()) {
        return violation();
      }
    }
    check_finished();
    if (error_.empty()) {
      check_result();
    }
    return error_.empty() ? std::nullopt : std::optional(violation());
  }

 private:
  struct Message {
    ChunkRange chunks;
    std::vector<Value> values;
  };

  struct Where {
    std::optional<LaneId> lane;
    std::uint64_t step = 0;
  };

  [[nodiscard]] Violation violation() const {
    return {.text = error_,
            .lane = where_.lane,
            .step = where_.step,
            .rank = wrong_rank_,
            .chunk = wrong_chunk_};
  }

  [[nodiscard]] std::uint32_t owner(std::uint32_t chunk) const { return chunk % ranks_; }
  [[nodiscard]] static Contributions only(std::uint32_t rank) { return Contributions{1} << rank; }

  [[nodiscard]] bool has_bytes(std::uint32_t chunk) const {
    return shape_.chunk_cuts.empty() ||
           shape_.chunk_cuts[chunk] < shape_.chunk_cuts[std::size_t{chunk} + 1];
  }

  [[nodiscard]] Contributions before(std::uint32_t rank, std::uint32_t chunk) const {
    switch (shape_.operation) {
      case Operation::AllReduce:
      case Operation::Reduce:
      case Operation::ReduceScatter:
      case Operation::Barrier:
        return only(rank);
      case Operation::Broadcast:
      case Operation::Scatter:
        return rank == shape_.root.value() ? only(rank) : 0;
      case Operation::AllGather:
      case Operation::Gather:
      case Operation::SendReceive:
        return rank == owner(chunk) ? only(rank) : 0;
      case Operation::AllToAll:
      case Operation::AllToAllV:
        return rank == chunk / ranks_ % ranks_ ? only(rank) : 0;
    }
    CHECK(false, "unknown operation");
  }

  // Returns what a rank must hold in the end; nothing where it does not matter.
  [[nodiscard]] std::optional<Contributions> after(std::uint32_t rank, std::uint32_t chunk) const {
    const auto if_here = [](bool here, Contributions value) {
      return here ? std::optional(value) : std::nullopt;
    };
    const bool is_root = rank == shape_.root.value();
    switch (shape_.operation) {
      case Operation::AllReduce:
      case Operation::Barrier:
        return everyone_;
      case Operation::Reduce:
        return if_here(is_root, everyone_);
      case Operation::ReduceScatter:
        return if_here(rank == owner(chunk), everyone_);
      case Operation::Broadcast:
        return only(shape_.root.value());
      case Operation::Scatter:
        return if_here(rank == owner(chunk), only(shape_.root.value()));
      case Operation::AllGather:
        return only(owner(chunk));
      case Operation::Gather:
        return if_here(is_root, only(owner(chunk)));
      case Operation::SendReceive:
        return if_here(rank == (owner(chunk) + 1) % ranks_, only(owner(chunk)));
      case Operation::AllToAll:
      case Operation::AllToAllV:
        return if_here(rank == owner(chunk) && has_bytes(chunk), only(chunk / ranks_ % ranks_));
    }
    CHECK(false, "unknown operation");
  }

  // Names where an error is, and remembers it.
  [[nodiscard]] std::string place(LaneId lane, std::uint64_t index) {
    where_ = {.lane = lane, .step = index};
    return fmt::format("{}, lane {}, step {}", name(schedule_.lane_rank(lane)), lane.value(),
                       index);
  }
  [[nodiscard]] std::string name(RankId id) const { return participant_name(shape_, id); }

  // Runs until the lane waits, ends or is wrong; true if it moved.
  bool run_lane(LaneId lane) {
    const std::uint64_t steps = schedule_.step_count(lane);
    std::uint64_t& index = next_[lane.value()];
    const std::uint64_t first = index;
    while (index < steps && error_.empty()) {
      const Step step = schedule_.step(lane, index);
      if (!well_formed(lane, index, step)) {
        break;
      }
      if (step.kind == StepKind::Wait) {
        if (next_[step.connection] < step.chunks.first) {
          break;
        }
      } else if (!is_message(step.kind)) {
        write(lane, index, step);
      } else if (step.kind == StepKind::Send) {
        send(lane, index, step);
      } else if (queues_[step.connection].empty()) {
        break;
      } else {
        receive(lane, index, step);
      }
      ++index;
    }
    return index != first;
  }

  bool well_formed(LaneId lane, std::uint64_t index, const Step& step) {
    const RankId here = schedule_.lane_rank(lane);
    if (here.value() >= participants_) {
      error_ =
          fmt::format("lane {} is of rank {}, which does not exist", lane.value(), here.value());
      return false;
    }
    if (step.kind == StepKind::Wait) {
      return well_formed_wait(lane, index, step);
    }
    if (is_message(step.kind) && step.connection >= shape_.connections) {
      error_ = fmt::format("{}: connection {} does not exist", place(lane, index), step.connection);
      return false;
    }
    const std::uint64_t end = std::uint64_t{step.chunks.first} + step.chunks.count;
    // A message may be nothing but a signal.
    if ((step.chunks.count == 0 && !is_message(step.kind)) || end > entries_) {
      error_ = fmt::format("{}: chunks {} to {} of {}", place(lane, index), step.chunks.first, end,
                           entries_);
      return false;
    }
    if (!is_message(step.kind)) {
      const bool fits = std::uint64_t{step.connection} + step.chunks.count <= entries_;
      error_ =
          fits ? "" : fmt::format("{}: reads beyond the {} chunks", place(lane, index), entries_);
      return fits;
    }
    const ScheduleConnection ends = schedule_.connection(step.connection);
    const bool sends = step.kind == StepKind::Send;
    if ((sends ? ends.source : ends.target) != here) {
      error_ = fmt::format("{}: {} connection {}, which leads from {} to {}", place(lane, index),
                           sends ? "sends on" : "receives from", step.connection, name(ends.source),
                           name(ends.target));
      return false;
    }
    return true;
  }

  bool well_formed_wait(LaneId lane, std::uint64_t index, const Step& step) {
    if (step.connection >= shape_.lanes ||
        schedule_.lane_rank(LaneId(step.connection)) != schedule_.lane_rank(lane)) {
      error_ = fmt::format("{}: waits for lane {}, which is none of its rank", place(lane, index),
                           step.connection);
    } else if (schedule_.step_count(LaneId(step.connection)) < step.chunks.first) {
      error_ = fmt::format("{}: waits for {} steps of lane {}, which has {}", place(lane, index),
                           step.chunks.first, step.connection,
                           schedule_.step_count(LaneId(step.connection)));
    }
    return error_.empty();
  }

  void send(LaneId lane, std::uint64_t index, const Step& step) {
    const std::vector<Value>& held = held_[schedule_.lane_rank(lane).value()];
    Message message{.chunks = step.chunks, .values = {}};
    for (std::uint32_t i = 0; i < step.chunks.count; ++i) {
      const std::uint32_t chunk = schedule_.chunk_at(step.chunks.first + i);
      if (held[chunk].set == 0) {
        error_ = fmt::format("{}: sends {}, which it does not hold", place(lane, index),
                             schedule_.chunk_name(chunk));
        return;
      }
      message.values.push_back(held[chunk]);
    }
    queues_[step.connection].push_back(std::move(message));
    last_sends_[step.connection] = {.lane = lane, .step = index};
  }

  void receive(LaneId lane, std::uint64_t index, const Step& step) {
    const Message message = std::move(queues_[step.connection].front());
    queues_[step.connection].pop_front();
    const bool fits = shape_.size_chunks > 0 ? message.chunks.count == step.chunks.count
                                             : message.chunks == step.chunks;
    if (!fits) {
      error_ = fmt::format("{}: expects {}, but {} were sent", place(lane, index),
                           range_name(step.chunks), range_name(message.chunks));
      return;
    }
    for (std::uint32_t i = 0; i < step.chunks.count && error_.empty(); ++i) {
      store(lane, index, step.kind == StepKind::Reduce, schedule_.chunk_at(step.chunks.first + i),
            message.values[i]);
    }
  }

  [[nodiscard]] std::string range_name(ChunkRange range) const {
    return shape_.size_chunks > 0 ? fmt::format("{} chunk(s)", range.count)
                                  : fmt::format("chunks {}+{}", range.first, range.count);
  }

  // Copy and Add.
  void write(LaneId lane, std::uint64_t index, const Step& step) {
    const std::vector<Value> held = held_[schedule_.lane_rank(lane).value()];
    for (std::uint32_t i = 0; i < step.chunks.count && error_.empty(); ++i) {
      const std::uint32_t from = schedule_.chunk_at(step.connection + i);
      if (held[from].set == 0) {
        error_ = fmt::format("{}: reads {}, which it does not hold", place(lane, index),
                             schedule_.chunk_name(from));
        return;
      }
      store(lane, index, step.kind == StepKind::Add, schedule_.chunk_at(step.chunks.first + i),
            held[from]);
    }
  }

  void store(LaneId lane, std::uint64_t index, bool adds, std::uint32_t chunk, Value value) {
    Value& held = held_[schedule_.lane_rank(lane).value()][chunk];
    if (!adds) {
      held = value;
    } else if (held.set == 0) {
      error_ = fmt::format("{}: reduces into {}, which it does not hold", place(lane, index),
                           schedule_.chunk_name(chunk));
    } else if (held.datum != value.datum) {
      error_ =
          fmt::format("{}: adds a part of chunk {} to a part of chunk {} in {}", place(lane, index),
                      value.datum, held.datum, schedule_.chunk_name(chunk));
    } else if ((held.set & value.set) != 0 && shape_.operation != Operation::Barrier) {
      error_ = fmt::format("{}: adds contributions {} to {} a second time", place(lane, index),
                           name_of(held.set & value.set), schedule_.chunk_name(chunk));
    } else {
      held.set |= value.set;
    }
  }

  void check_finished() {
    for (std::uint32_t lane = 0; lane < shape_.lanes; ++lane) {
      if (next_[lane] < schedule_.step_count(LaneId(lane))) {
        const Step step = schedule_.step(LaneId(lane), next_[lane]);
        const std::string whom = step.kind == StepKind::Wait
                                     ? fmt::format("lane {}", step.connection)
                                     : name(schedule_.connection(step.connection).source);
        error_ = fmt::format("{}: waits for ever for {}", place(LaneId(lane), next_[lane]), whom);
        return;
      }
    }
    for (std::uint32_t index = 0; index < shape_.connections; ++index) {
      if (!queues_[index].empty()) {
        const ScheduleConnection ends = schedule_.connection(index);
        where_ = last_sends_[index];
        error_ = fmt::format("{} sends {} message(s) to {} that it never receives",
                             name(ends.source), queues_[index].size(), name(ends.target));
        return;
      }
    }
  }

  void check_result() {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t chunk = 0; chunk < shape_.chunk_count; ++chunk) {
        const std::optional<std::uint32_t> datum = schedule_.datum_after(RankId(rank), chunk);
        const std::optional<Contributions> wanted = datum ? after(rank, *datum) : std::nullopt;
        const Value& held = held_[rank][chunk];
        if (wanted && (held.set != *wanted || held.datum != *datum)) {
          wrong_rank_ = RankId(rank);
          wrong_chunk_ = chunk;
          error_ = fmt::format("rank {} ends with {} in {} instead of {}", rank, name_of(held.set),
                               schedule_.chunk_name(chunk), name_of(*wanted));
          error_ += held.set == 0 || held.datum == *datum
                        ? ""
                        : fmt::format(", of chunk {} instead of {}", held.datum, *datum);
          return;
        }
      }
    }
  }

  const Schedule& schedule_;
  const ScheduleShape& shape_;
  std::uint32_t ranks_;
  std::uint32_t participants_;  // Ranks and relays.
  std::uint32_t entries_;       // Length of the listing, or chunks.
  Contributions everyone_;
  std::vector<std::vector<Value>> held_;     // Indexed by rank or relay, then chunk.
  std::vector<std::deque<Message>> queues_;  // One per connection.
  std::vector<Where> last_sends_;            // One per connection.
  std::vector<std::uint64_t> next_;          // The step that each lane runs next.
  std::string error_;
  Where where_;
  std::optional<RankId> wrong_rank_;
  std::optional<std::uint32_t> wrong_chunk_;
};

}  // namespace

std::optional<Violation> find_violation(const Schedule& schedule) {
  CHECK(schedule.shape().ranks >= 1 && schedule.shape().ranks <= kMaxProvedRanks,
        "the prover takes 1 to 64 ranks");
  std::optional<Violation> violation = Prover(schedule).run(false);
  return violation ? violation : Prover(schedule).run(true);
}

}  // namespace trainyard
