// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace trainyard {
namespace {

// Kind, generation and index of an event.
std::uint64_t token_of(GraphEvent event, std::uint32_t generation, std::uint32_t index) {
  return (static_cast<std::uint64_t>(event) << 60U) |
         (static_cast<std::uint64_t>(generation & 0x0fff'ffffU) << 32U) | index;
}

}  // namespace

GraphRun::GraphRun(Simulator& simulator, const OperationGraph& graph, GraphTraffic& traffic,
                   const GraphRunOptions& options)
    : EventHandler(simulator),
      simulator_(simulator),
      graph_(graph),
      traffic_(traffic),
      options_(options),
      begin_(simulator.now()),
      meetings_(graph),
      is_ready_(graph.operations().size()),
      come_(meetings_.size()),
      has_started_(meetings_.size()),
      message_times_(meetings_.size(), kUnknown),
      ranks_(static_cast<std::size_t>(graph.ranks())),
      queues_(graph.streams().size()),
      successors_(successors_of(graph)) {
  result_.timings = GraphTimings(is_ready_.size());
}

void GraphRun::notify(EventHandler& done, std::uint64_t token) {
  done_ = &done;
  done_token_ = token;
}

void GraphRun::start() {
  for (auto id = static_cast<std::uint32_t>(is_ready_.size()); id-- > 0;) {
    if (successors_.waits[id] == 0) {
      ready_.emplace_back(id);
    }
  }
  run_ready();
}

GraphResult GraphRun::result() {
  for (std::uint32_t id = 0; id < is_ready_.size(); ++id) {
    result_.finish = std::max(result_.finish, result_.timings.end(OperationId(id)));
  }
  list_waits();
  return std::move(result_);
}

void GraphRun::run_ready() {
  while (!ready_.empty()) {
    const OperationId id = ready_.back();
    ready_.pop_back();
    become_ready(id);
  }
}

// Returns whether the operation is at the head of its stream's queue, which it joins if it is new.
bool GraphRun::takes_stream(OperationId id) {
  std::deque<OperationId>& queue = queues_[graph_.operation(id).stream.value()];
  if (queue.empty() || queue.front() != id) {
    queue.push_back(id);
  }
  return queue.front() == id;
}

void GraphRun::become_ready(OperationId id) {
  if (graph_.stream_of(id).order == StreamOrder::Ready && !takes_stream(id)) {
    return;
  }
  is_ready_[id.value()] = true;
  const GraphOperation& operation = graph_.operation(id);
  if (operation.kind == GraphOperationKind::Compute) {
    start_compute(id);
    return;
  }
  if (operation.kind == GraphOperationKind::Host) {
    simulator_.schedule(operation.time, *this, token_of(GraphEvent::End, 0, id.value()));
    return;
  }
  const std::uint32_t meeting = meetings_.of(id);
  if (operation.kind == GraphOperationKind::Collective) {
    if (++come_[meeting] == meetings_.expected(graph_, meeting)) {
      start_call(meeting, id);
    }
    return;
  }
  ready_for_message(meeting, id);
}

void GraphRun::end(OperationId id) {
  result_.timings.set_end(id, now());
  if (++ended_ == is_ready_.size() && done_ != nullptr) {
    simulator_.schedule(SimTime(), *done_, done_token_);
  }
  if (graph_.stream_of(id).order == StreamOrder::Ready) {
    std::deque<OperationId>& queue = queues_[graph_.operation(id).stream.value()];
    queue.pop_front();
    if (!queue.empty()) {
      result_.timings.set_cause(queue.front(), id);
      ready_.push_back(queue.front());
    }
  }
  // The order is falling, as the last one is started first.
  for (std::size_t index = successors_.first[id.value() + 1];
       index-- > successors_.first[id.value()];) {
    const OperationId after = successors_.next[index];
    if (--successors_.waits[after.value()] == 0) {
      result_.timings.set_cause(after, id);
      ready_.push_back(after);
    }
  }
}

void GraphRun::on_event(std::uint64_t token) {
  const auto event = static_cast<GraphEvent>(token >> 60U);
  const auto generation = static_cast<std::uint32_t>((token >> 32U) & 0x0fff'ffffU);
  const auto index = static_cast<std::uint32_t>(token);
  switch (event) {
    case GraphEvent::Compute:
      if (const Computing* computing = find_computing(OperationId(index));
          computing != nullptr && (computing->progress.generation & 0x0fff'ffffU) == generation) {
        end_compute(OperationId(index));
      }
      break;
    case GraphEvent::Meeting: {
      const OperationId first = meetings_.members(index).front();
      if (graph_.operation(first).kind != GraphOperationKind::Collective) {
        message_arrived(index);
      } else if (const auto call = calling_.find(index);
                 call != calling_.end() &&
                 (call->second.progress.generation & 0x0fff'ffffU) == generation) {
        end_call(index);
      }
      break;
    }
    case GraphEvent::End:
      end(OperationId(index));
      break;
  }
  run_ready();
}

GraphRun::Computing* GraphRun::find_computing(OperationId id) {
  std::vector<Computing>& all = rank_of(id).computing;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Computing& each) { return each.id == id; });
  return found == all.end() ? nullptr : &*found;
}

void GraphRun::start_compute(OperationId id) {
  const SimTime work = compute_parts(graph_, id, options_).total();
  RankState& rank = rank_of(id);
  WorkProgress& progress =
      rank.computing
          .emplace_back(Computing{.id = id, .progress = {.left = grains_of(work), .since = now()}})
          .progress;
  if (rank.slowing.empty()) {
    schedule(GraphEvent::Compute, id.value(), progress);
  } else {
    progress.factor_ppm = 0;  // Not scheduled yet.
    change_speeds(rank);
  }
}

void GraphRun::end_compute(OperationId id) {
  RankState& rank = rank_of(id);
  std::erase_if(rank.computing, [&](const Computing& each) { return each.id == id; });
  result_.timings.set_slowed(
      id, now() - result_.timings.start(id) - compute_parts(graph_, id, options_).total());
  end(id);
  // Operations that start now on the same rank keep the speeds as they are: start them first.
  run_ready();
  if (!rank.slowing.empty()) {
    change_speeds(rank);
  }
}

void GraphRun::begin(OperationId id, OperationId starter) {
  if (result_.timings.ready(id) < now()) {
    result_.timings.set_starter(id, starter);
  }
}

void GraphRun::schedule(GraphEvent event, std::uint32_t index, WorkProgress& progress) {
  ++progress.generation;
  simulator_.schedule(progress.time_left(), *this, token_of(event, progress.generation, index));
}

std::int64_t GraphRun::slowdown_of(std::uint32_t meeting) const {
  return graph_.operation(meetings_.members(meeting).front()).call.slowdown_ppm;
}

// Runs after what runs on the rank has changed.
void GraphRun::change_speeds(RankState& rank) {
  std::int64_t slowdown = 0;
  for (const std::uint32_t meeting : rank.slowing) {
    slowdown = std::max(slowdown, slowdown_of(meeting));
  }
  const std::int64_t factor = kPartsPerMillion + slowdown;
  for (auto& [id, progress] : rank.computing) {
    if (progress.factor_ppm != factor) {
      if (progress.factor_ppm != 0) {
        progress.catch_up(now());
      }
      progress.factor_ppm = factor;
      schedule(GraphEvent::Compute, id.value(), progress);
    }
    for (const std::uint32_t meeting : rank.slowing) {
      if (slowdown_of(meeting) == slowdown) {
        const OperationId first = meetings_.members(meeting).front();
        result_.timings.set_slowed_by(id, graph_.operation(first).part);
      }
    }
  }
  for (const std::uint32_t meeting : rank.slowing) {
    Calling& call = calling_.at(meeting);
    if (!call.time) {
      continue;
    }
    const std::span<const OperationId> members = meetings_.members(meeting);
    const bool is_slow = std::any_of(members.begin(), members.end(), [&](OperationId id) {
      return !rank_of(id).computing.empty();
    });
    const std::int64_t wanted = kPartsPerMillion + (is_slow ? slowdown_of(meeting) : 0);
    if (call.progress.factor_ppm != wanted) {
      call.progress.catch_up(now());
      call.progress.factor_ppm = wanted;
      schedule(GraphEvent::Meeting, meeting, call.progress);
    }
  }
}

void GraphRun::start_call(std::uint32_t meeting, OperationId last) {
  has_started_[meeting] = true;
  const std::span<const OperationId> members = meetings_.members(meeting);
  for (const OperationId id : members) {
    begin(id, last);
  }
  const GraphCall& call = graph_.operation(last).call;
  const GraphCommunicator& communicator = graph_.communicators()[call.communicator.value()];
  const bool is_free = call.operation == Operation::Barrier || communicator.ranks.size() < 2;
  Calling& calling = calling_[meeting];
  calling.time = is_free ? SimTime() : traffic_.call_time(communicator, call);
  calling.progress = {.left = grains_of(calling.time.value_or(SimTime())), .since = now()};
  if (calling.time) {
    schedule(GraphEvent::Meeting, meeting, calling.progress);
  } else {
    traffic_.start_call(communicator, call, *this, token_of(GraphEvent::Meeting, 0, meeting));
  }
  if (call.slowdown_ppm > 0 && !is_free) {
    for (const OperationId id : members) {
      rank_of(id).slowing.push_back(meeting);
      change_speeds(rank_of(id));
    }
  }
}

void GraphRun::end_call(std::uint32_t meeting) {
  const std::span<const OperationId> members = meetings_.members(meeting);
  for (const OperationId id : members) {
    if (std::erase(rank_of(id).slowing, meeting) > 0) {
      change_speeds(rank_of(id));
    }
  }
  calling_.erase(meeting);
  for (const OperationId id : members) {
    end(id);
  }
}

void GraphRun::ready_for_message(std::uint32_t meeting, OperationId id) {
  ++come_[meeting];
  const std::span<const OperationId> ends = meetings_.members(meeting);
  if (ends.size() == 2 && graph_.operation(ends.front()).message.handover == Handover::Rendezvous) {
    if (come_[meeting] == 2) {
      begin(ends.front(), id);
      begin(ends.back(), id);
      send_message(meeting);
    }
    return;
  }
  if (graph_.operation(id).kind == GraphOperationKind::Send) {
    send_message(meeting);
  } else if (has_started_[meeting]) {
    receive(id, meeting);
  }
}

void GraphRun::send_message(std::uint32_t meeting) {
  has_started_[meeting] = true;
  const std::span<const OperationId> ends = meetings_.members(meeting);
  const OperationId source = ends.front();
  const GraphMessage& message = graph_.operation(source).message;
  const int from = graph_.rank_of(source);
  if (const auto time = traffic_.message_time(from, message.peer, message.size)) {
    message_times_[meeting] = *time;
    simulator_.schedule(*time, *this, token_of(GraphEvent::Meeting, 0, meeting));
  } else {
    traffic_.start_message(from, message.peer, message.size, *this,
                           token_of(GraphEvent::Meeting, 0, meeting));
  }
  if (message.handover != Handover::Rendezvous && ends.size() == 2) {
    const OperationId target = ends.back();
    if (is_ready_[target.value()]) {
      begin(target, source);
      receive(target, meeting);
    }
  }
}

void GraphRun::message_arrived(std::uint32_t meeting) {
  const std::span<const OperationId> ends = meetings_.members(meeting);
  const OperationId source = ends.front();
  const bool was_known = message_times_[meeting] != kUnknown;
  message_times_[meeting] = now() - result_.timings.start(source);
  end(source);
  if (ends.size() < 2) {
    return;
  }
  const OperationId target = ends.back();
  if (graph_.operation(source).message.handover == Handover::Rendezvous) {
    end(target);
  } else if (!was_known && is_ready_[target.value()]) {
    receive(target, meeting);
  }
}

// Receives a message that has started and is no rendezvous.
void GraphRun::receive(OperationId id, std::uint32_t meeting) {
  if (const SimTime time = message_times_[meeting]; time != kUnknown) {
    const OperationId source = meetings_.members(meeting).front();
    const bool is_eager = graph_.operation(source).message.handover == Handover::Eager;
    const SimTime end = result_.timings.start(is_eager ? source : id) + time;
    simulator_.schedule_at(begin_ + std::max(end, now()), *this,
                           token_of(GraphEvent::End, 0, id.value()));
  }
}

void GraphRun::list_waits() {
  std::vector<bool> is_listed(graph_.streams().size(), false);
  for (std::uint32_t id = 0; id < is_ready_.size(); ++id) {
    const std::uint32_t stream = graph_.operation(OperationId(id)).stream.value();
    if (!result_.timings.has_ended(OperationId(id)) && !is_listed[stream]) {
      is_listed[stream] = true;
      result_.waits.push_back(wait_of(OperationId(id)));
    }
  }
}

// Returns the wait of the first operation of a stream that has not ended.
std::string GraphRun::wait_of(OperationId id) const {
  std::string reason = "the network";
  const GraphOperationKind kind = graph_.operation(id).kind;
  if (!is_ready_[id.value()]) {
    for (const GraphDependency& dependency : graph_.dependencies()) {
      if (dependency.after == id && !result_.timings.has_ended(dependency.before)) {
        reason = graph_.describe(dependency.before);
        break;
      }
    }
  } else if (kind != GraphOperationKind::Compute && kind != GraphOperationKind::Host &&
             !has_started_[meetings_.of(id)]) {
    const std::span<const OperationId> members = meetings_.members(meetings_.of(id));
    const auto missing = std::find_if(members.begin(), members.end(), [&](OperationId member) {
      return !is_ready_[member.value()];
    });
    reason = missing == members.end() ? "a rank that never comes" : graph_.describe(*missing);
  }
  return fmt::format("{} waits for {}", graph_.describe(id), reason);
}

}  // namespace trainyard
