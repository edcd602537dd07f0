// SPDX-License-Identifier: Apache-2.0
#include "collectives/run/executor.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace trainyard {

ScheduleConnections::ScheduleConnections(const Schedule& schedule,
                                         std::span<const NodeId> rank_nodes)
    : schedule_(schedule), rank_nodes_(rank_nodes), turns_(rank_nodes.size()) {}

// Connections of a rank take its NICs in turn, those that leave it and those that arrive, unless
// the schedule has laid them out itself. Of channels that go the same ways, each begins with
// another NIC, so that messages of a rank to one partner go by all of them. What a rank exchanges
// with a switch leaves the turns of the others as they are: it goes by NVLink, or is laid out.
ConnectionSpec ScheduleConnections::next() {
  const std::uint32_t index = next_++;
  const std::uint32_t in_channel = schedule_.shape().channel_connections;
  if (in_channel > 0 && index % in_channel == 0) {
    const std::uint32_t channel = index / in_channel;
    std::ranges::fill(turns_, NicTurns{.source = channel, .target = channel});
  }
  const ScheduleConnection ends = schedule_.connection(index);
  NicTurns& from = turns_[ends.source.value()];
  NicTurns& to = turns_[ends.target.value()];
  const NicTurns turn{.source = from.source, .target = to.target};
  const auto ranks = static_cast<std::uint32_t>(schedule_.shape().ranks);
  if (ends.source.value() < ranks && ends.target.value() < ranks) {
    ++from.source;
    ++to.target;
  }
  return {.source = rank_nodes_[ends.source.value()],
          .target = rank_nodes_[ends.target.value()],
          .flow_label = ends.flow_label.value_or(index),
          .nic_turns = ends.flow_label ? std::nullopt : std::optional(turn)};
}

Executor::Executor(Simulator& simulator, Network& network, const Schedule& schedule,
                   std::span<const NodeId> rank_nodes, Bytes size, TraceRecorder* trace)
    : EventHandler(simulator),
      simulator_(simulator),
      network_(network),
      schedule_(schedule),
      chunking_(schedule.shape(), size),
      trace_(trace),
      next_(schedule.shape().lanes, 0) {
  const ScheduleShape& shape = schedule.shape();
  CHECK(rank_nodes.size() == static_cast<std::size_t>(shape.ranks + shape.relays),
        "a rank or relay without a node");
  links_.reserve(shape.connections);
  network.reserve(shape.connections);
  ScheduleConnections connections(schedule, rank_nodes);
  for (std::uint32_t index = 0; index < shape.connections; ++index) {
    links_.push_back({.connection = network.connect(connections.next())});
  }
  if (trace_ != nullptr) {
    waiting_since_.resize(shape.lanes);
    for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
      lane_tracks_.push_back(trace_->add_track(
          participant_name(shape, schedule.lane_rank(LaneId(lane))), fmt::format("lane {}", lane)));
    }
  }
}

void Executor::start() {
  const std::uint32_t lanes = schedule_.shape().lanes;
  lanes_left_ = lanes;
  last_end_ = simulator_.now();
  std::ranges::fill(next_, 0);
  last_sends_.assign(schedule_.shape().rendezvous ? lanes : 0, {});
  std::ranges::fill(waiting_since_, simulator_.now());
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    advance(lane);
  }
}

void Executor::advance(std::uint32_t lane) {
  run_lane(lane);
  while (!ready_.empty()) {
    const std::uint32_t next = ready_.back();
    ready_.pop_back();
    run_lane(next);
  }
}

void Executor::wake_waiters(std::uint32_t lane) {
  if (lane >= waiters_.size() || waiters_[lane].empty()) {
    return;
  }
  const auto is_early = [&](std::uint32_t waiter) {
    return next_[lane] < schedule_.step(LaneId(waiter), next_[waiter]).chunks.first;
  };
  std::vector<std::uint32_t>& waiting = waiters_[lane];
  const auto woken = std::stable_partition(waiting.begin(), waiting.end(), is_early);
  // The first to wait runs first.
  ready_.insert(ready_.end(), waiting.rbegin(), std::make_reverse_iterator(woken));
  waiting.erase(woken, waiting.end());
}

void Executor::on_event(std::uint64_t token) {
  Link& link = links_[token];
  ++link.arrived;
  link.under_way = false;
  if (link.waiting != kNoLane) {
    const std::uint32_t lane = link.waiting;
    link.waiting = kNoLane;
    advance(lane);
  }
  if (schedule_.shape().rendezvous) {
    end_send(link.sender);
  }
}

bool Executor::can_send(std::uint32_t lane, std::uint32_t index) {
  if (!schedule_.shape().rendezvous) {
    return true;
  }
  LastSend& last = last_sends_[lane];
  if (!last.has_arrived) {
    last.is_awaited = true;
    return false;
  }
  last.has_arrived = false;
  links_[index].sender = lane;
  return true;
}

void Executor::end_send(std::uint32_t lane) {
  LastSend& last = last_sends_[lane];
  last.has_arrived = true;
  if (last.is_awaited) {
    last.is_awaited = false;
    advance(lane);
  }
}

void Executor::run_lane(std::uint32_t lane) {
  const std::uint64_t steps = schedule_.step_count(LaneId(lane));
  std::uint64_t& index = next_[lane];
  for (; index < steps; ++index) {
    const Step step = schedule_.step(LaneId(lane), index);
    if (!is_message(step.kind)) {
      if (step.kind == StepKind::Wait && next_[step.connection] < step.chunks.first) {
        waiters_.resize(schedule_.shape().lanes);
        waiters_[step.connection].push_back(lane);
        wake_waiters(lane);
        return;
      }
      continue;
    }
    Link& link = links_[step.connection];
    const Bytes bytes = chunking_.bytes(step.chunks);
    if (step.kind == StepKind::Send) {
      if (!can_send(lane, step.connection)) {
        wake_waiters(lane);
        return;
      }
      bytes_sent_ += bytes;
      ++messages_sent_;
      send(step.connection, bytes);
      continue;
    }
    if (link.arrived == 0) {
      link.waiting = lane;
      if (link.held && !link.under_way) {
        link.held = false;
        start_message(step.connection, link.held_size);
      }
      wake_waiters(lane);
      return;
    }
    --link.arrived;
    ++messages_received_;
    bytes_received_ += bytes;
    if (trace_ != nullptr) {
      record(lane, step);
    }
  }
  --lanes_left_;
  last_end_ = simulator_.now();
  wake_waiters(lane);
  if (lanes_left_ == 0 && done_ != nullptr) {
    simulator_.schedule(SimTime(), *done_, done_token_);
  }
}

void Executor::send(std::uint32_t index, Bytes size) {
  Link& link = links_[index];
  if (schedule_.shape().rendezvous && (link.waiting == kNoLane || link.under_way)) {
    CHECK(!link.held, "a second message is sent before the receiver waits for the first");
    link.held = true;
    link.held_size = size;
    return;
  }
  start_message(index, size);
}

void Executor::start_message(std::uint32_t index, Bytes size) {
  links_[index].under_way = true;
  network_.send(links_[index].connection, size, *this, index);
}

void Executor::record(std::uint32_t lane, const Step& step) {
  trace_->add_span(
      lane_tracks_[lane],
      fmt::format("{} from {}, {} B", step.kind == StepKind::Reduce ? "reduce" : "receive",
                  participant_name(schedule_.shape(), schedule_.connection(step.connection).source),
                  chunking_.bytes(step.chunks).count()),
      waiting_since_[lane], simulator_.now(),
      {.category = step.kind == StepKind::Reduce ? "reduce" : "receive",
       .bytes = chunking_.bytes(step.chunks)});
  waiting_since_[lane] = simulator_.now();
}

SimTime Executor::finish_time() const {
  return std::max(end(), network_.quiet_time());
}

SimTime Executor::end() const {
  CHECK(finished(), "the collective has not finished");
  return last_end_;
}

std::optional<std::string> Executor::contract_violation() const {
  for (std::uint32_t lane = 0; lane < schedule_.shape().lanes; ++lane) {
    if (next_[lane] < schedule_.step_count(LaneId(lane))) {
      const Step step = schedule_.step(LaneId(lane), next_[lane]);
      const ScheduleShape& shape = schedule_.shape();
      const auto ends = [&] { return schedule_.connection(step.connection); };
      const std::string whom =
          step.kind == StepKind::Wait
              ? fmt::format("lane {}", step.connection)
              : participant_name(shape,
                                 step.kind == StepKind::Send ? ends().target : ends().source);
      return fmt::format("{} (lane {}, step {}) still waits for {}; {} of {} lanes ended",
                         participant_name(shape, schedule_.lane_rank(LaneId(lane))), lane,
                         next_[lane], whom, shape.lanes - lanes_left_, shape.lanes);
    }
  }
  if (bytes_sent_ != bytes_received_ || messages_sent_ != messages_received_) {
    return fmt::format("{} messages of {} bytes were sent, {} of {} bytes received", messages_sent_,
                       bytes_sent_.count(), messages_received_, bytes_received_.count());
  }
  return std::nullopt;
}

}  // namespace trainyard
