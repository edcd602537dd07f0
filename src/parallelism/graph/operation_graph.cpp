// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/operation_graph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "parallelism/graph/graph_meetings.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(as_index(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class GraphCheck {
 public:
  GraphCheck(const OperationGraph& graph, std::string_view place) : graph_(graph), place_(place) {}

  void run() {
    check_ranks();
    for (const GraphCommunicator& communicator : graph_.communicators()) {
      check_members(communicator);
    }
    for (std::uint32_t id = 0; id < graph_.operations().size(); ++id) {
      check_operation(OperationId(id));
    }
    meetings_.emplace(graph_);
    for (std::uint32_t meeting = 0; meeting < meetings_->size(); ++meeting) {
      check_meeting(meeting);
    }
    check_cycles();
  }

 private:
  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    throw ConfigError(
        fmt::format("{}: {}", place_, fmt::format(text, std::forward<Arguments>(arguments)...)));
  }

  void check_ranks() const {
    for (const GraphStream& stream : graph_.streams()) {
      if (!graph_.has_rank(stream.rank)) {
        fail("stream {}: expected a rank of the graph, which has {} of {}, found {}", stream.name,
             graph_.present().size(), graph_.ranks(), stream.rank);
      }
    }
  }

  void check_members(const GraphCommunicator& communicator) const {
    std::vector<int> sorted = communicator.ranks;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      fail("communicator {}: expected each rank once, found {} twice", communicator.name, *twice);
    }
    if (sorted.empty() || sorted.front() < 0 || sorted.back() >= graph_.ranks()) {
      fail("communicator {}: expected ranks from 0 to {}, found {}", communicator.name,
           graph_.ranks() - 1,
           sorted.empty()       ? "none"
           : sorted.front() < 0 ? std::to_string(sorted.front())
                                : std::to_string(sorted.back()));
    }
  }

  void check_operation(OperationId id) const {
    const GraphOperation& operation = graph_.operation(id);
    const int rank = graph_.rank_of(id);
    switch (operation.kind) {
      case GraphOperationKind::Compute:
      case GraphOperationKind::Host:
        if (operation.time < SimTime()) {
          fail("{}: expected a time that is not negative, found {}", graph_.describe(id),
               to_string(operation.time));
        }
        return;
      case GraphOperationKind::Collective: {
        const GraphCommunicator& communicator =
            graph_.communicators()[operation.call.communicator.value()];
        const auto& ranks = communicator.ranks;
        if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
          fail("{}: expected a communicator that the rank is in, found {}", graph_.describe(id),
               communicator.name);
        }
        return;
      }
      case GraphOperationKind::Send:
      case GraphOperationKind::Receive:
        if (operation.message.peer == rank || !graph_.has_rank(operation.message.peer)) {
          fail("{}: expected another rank of the graph as its peer, found {}", graph_.describe(id),
               operation.message.peer);
        }
        return;
    }
  }

  void check_meeting(std::uint32_t meeting) const {
    const std::span<const OperationId> members = meetings_->members(meeting);
    const OperationId first = members.front();
    const GraphOperation& operation = graph_.operation(first);
    if (operation.kind == GraphOperationKind::Collective) {
      check_call(meeting);
      return;
    }
    if (members.size() < 2) {
      const bool sends = operation.kind == GraphOperationKind::Send;
      fail("{}: expected {} of rank {} with tag {}, number {}, found none", graph_.describe(first),
           sends ? "a receive" : "a send", operation.message.peer, operation.message.tag,
           meeting_number(graph_, first));
    }
    const Bytes sent = operation.message.size;
    const Bytes received = graph_.operation(members.back()).message.size;
    if (sent != received) {
      fail("{}: expected {} as {} sends, found {}", graph_.describe(members.back()),
           to_string(sent), graph_.describe(first), to_string(received));
    }
  }

  void check_call(std::uint32_t meeting) const {
    const std::span<const OperationId> members = meetings_->members(meeting);
    const OperationId first = members.front();
    const GraphCall& call = graph_.operation(first).call;
    const GraphCommunicator& communicator = graph_.communicators()[call.communicator.value()];
    if (members.size() < meetings_->expected(graph_, meeting)) {
      for (const int rank : communicator.ranks) {
        const bool comes = std::any_of(members.begin(), members.end(),
                                       [&](OperationId id) { return graph_.rank_of(id) == rank; });
        if (!comes && graph_.has_rank(rank)) {
          fail("communicator {}: expected call {} of every rank, as {}, found none of rank {}",
               communicator.name, meeting_number(graph_, first), graph_.describe(first), rank);
        }
      }
    }
    for (const OperationId id : members) {
      const GraphCall& other = graph_.operation(id).call;
      if (!(other == call)) {
        fail("communicator {}: call {}: expected {} of {} as {}, found {} of {}: {}",
             communicator.name, meeting_number(graph_, first), text_of(call), to_string(call.size),
             graph_.describe(first), text_of(other), to_string(other.size), graph_.describe(id));
      }
    }
  }

  static std::string text_of(const GraphCall& call) {
    const std::string name(to_string(call.operation));
    return call.times == 1 ? name : fmt::format("{} times {}", call.times, name);
  }

  // Returns whether the sender of a message goes on without the receiver.
  [[nodiscard]] bool is_sent_ahead(OperationId id) const {
    const GraphOperation& operation = graph_.operation(id);
    return operation.kind == GraphOperationKind::Send &&
           operation.message.handover != Handover::Rendezvous;
  }

  // Returns those that begin together with the operation: it alone, unless it meets others.
  [[nodiscard]] std::span<const OperationId> together_with(const OperationId& id) const {
    const GraphOperationKind kind = graph_.operation(id).kind;
    if (kind == GraphOperationKind::Compute || kind == GraphOperationKind::Host) {
      return {&id, 1};
    }
    const std::span<const OperationId> members = meetings_->members(meetings_->of(id));
    return is_sent_ahead(members.front()) ? std::span<const OperationId>{&id, 1} : members;
  }

  // Takes away, again and again, what waits for nothing; what meets is taken away together, as the
  // first of it.
  void check_cycles() {
    GraphSuccessors left = successors_of(graph_);
    const auto count = static_cast<std::uint32_t>(left.waits.size());
    std::size_t still = 0;
    for (std::uint32_t meeting = 0; meeting < meetings_->size(); ++meeting) {
      const std::span<const OperationId> members = meetings_->members(meeting);
      if (is_sent_ahead(members.front())) {
        ++left.waits[members.back().value()];
        continue;
      }
      for (const OperationId id : members.subspan(1)) {
        left.waits[members.front().value()] += std::exchange(left.waits[id.value()], 0U);
      }
    }
    std::vector<OperationId> free;
    for (std::uint32_t index = 0; index < count; ++index) {
      const OperationId id(index);
      if (together_with(id).front() == id) {
        ++still;
        if (left.waits[index] == 0) {
          free.push_back(id);
        }
      }
    }
    const auto take_away = [&](OperationId after) {
      const OperationId first = together_with(after).front();
      if (--left.waits[first.value()] == 0) {
        free.push_back(first);
      }
    };
    while (!free.empty()) {
      const OperationId first = free.back();
      free.pop_back();
      --still;
      for (const OperationId id : together_with(first)) {
        std::for_each(left.next.begin() + left.first[id.value()],
                      left.next.begin() + left.first[id.value() + 1], take_away);
      }
      if (is_sent_ahead(first)) {
        take_away(meetings_->members(meetings_->of(first)).back());
      }
    }
    if (still > 0) {
      complain_of_cycle(left.waits);
    }
  }

  // Lists who waits for whom, where what meets is one, in the order of its first members.
  [[nodiscard]] std::vector<GraphDependency> all_waits() const {
    std::vector<GraphDependency> waits;
    const auto add = [&](OperationId before, OperationId after) {
      waits.push_back(
          {.before = together_with(before).front(), .after = together_with(after).front()});
    };
    for_each_wait(graph_, add);
    for (std::uint32_t meeting = 0; meeting < meetings_->size(); ++meeting) {
      const std::span<const OperationId> members = meetings_->members(meeting);
      if (is_sent_ahead(members.front())) {
        add(members.front(), members.back());
      }
    }
    std::sort(waits.begin(), waits.end(), [](const GraphDependency& a, const GraphDependency& b) {
      return std::tie(a.before, a.after) < std::tie(b.before, b.after);
    });
    return waits;
  }

  // Goes from what waits to what it waits for until something comes again.
  [[noreturn]] void complain_of_cycle(const std::vector<std::uint32_t>& waits) const {
    std::vector<std::optional<OperationId>> before(waits.size());
    std::optional<OperationId> at;
    for (const GraphDependency& edge : all_waits()) {
      if (waits[edge.before.value()] > 0 && waits[edge.after.value()] > 0) {
        before[edge.after.value()] = edge.before;
        at = edge.after;
      }
    }
    CHECK(at.has_value(), "what is left waits for something that is left");
    for (std::size_t step = 0; step < waits.size(); ++step) {
      at = before[at->value()];
    }
    std::string text = graph_.describe(*at);
    constexpr int kMaxShown = 8;
    int length = 0;
    for (OperationId id = *before[at->value()];; id = *before[id.value()]) {
      ++length;
      if (length <= kMaxShown) {
        text += fmt::format("{} waits for {}", length == 1 ? "" : ", which", graph_.describe(id));
      }
      if (id == *at) {
        break;
      }
    }
    fail("expected operations that can all run, found a cycle of {}: {}", length, text);
  }

  const OperationGraph& graph_;
  std::string_view place_;
  std::optional<GraphMeetings> meetings_;
};

}  // namespace

OperationGraph::OperationGraph(int ranks)
    : ranks_(ranks), is_folded_(false), present_(all_ranks(ranks)) {}

OperationGraph::OperationGraph(int ranks, std::vector<int> representatives)
    : ranks_(ranks), is_folded_(true), present_(std::move(representatives)) {
  std::sort(present_.begin(), present_.end());
  present_.erase(std::unique(present_.begin(), present_.end()), present_.end());
  CHECK(!present_.empty() && present_.front() >= 0 && present_.back() < ranks,
        "representatives are ranks");
}

bool OperationGraph::has_rank(int rank) const {
  return std::binary_search(present_.begin(), present_.end(), rank);
}

StreamId OperationGraph::add_stream(int rank, std::string name, StreamOrder order) {
  streams_.push_back({.rank = rank, .name = std::move(name), .order = order});
  return StreamId(static_cast<std::uint32_t>(streams_.size() - 1));
}

CommunicatorId OperationGraph::add_communicator(std::string name, std::vector<int> ranks,
                                                std::vector<int> timed_as) {
  CHECK(timed_as.empty() || timed_as.size() == ranks.size(), "a group of the same size");
  communicators_.push_back(
      {.name = std::move(name), .ranks = std::move(ranks), .timed_as = std::move(timed_as)});
  return CommunicatorId(static_cast<std::uint32_t>(communicators_.size() - 1));
}

std::uint32_t OperationGraph::add_mix(const StepParts& parts) {
  mixes_.push_back(parts);
  return static_cast<std::uint32_t>(mixes_.size() - 1);
}

NameId OperationGraph::add_name(std::string_view text) {
  return NameId(names_.add(text));
}

OperationId OperationGraph::add(const GraphOperation& operation) {
  CHECK(operation.stream.value() < streams_.size(), "a stream of this graph");
  CHECK(streams_[operation.stream.value()].order != StreamOrder::Ready ||
            operation.kind == GraphOperationKind::Compute ||
            operation.kind == GraphOperationKind::Host,
        "what meets others does not hold a stream that has no order of its own");
  Packed packed{.kind = operation.kind,
                .part = operation.part,
                .handover = operation.message.handover,
                .has_mix = operation.mix.has_value(),
                .stream = operation.stream,
                .name = operation.name,
                .index = static_cast<std::uint32_t>(operation.message.peer),
                .tag = operation.message.tag,
                .amount = operation.message.size.count()};
  if (operation.kind == GraphOperationKind::Collective) {
    const auto added = call_ids_.emplace(operation.call, calls_.size());
    if (added.second) {
      calls_.push_back(operation.call);
    }
    packed.index = added.first->second;
  } else if (operation.kind == GraphOperationKind::Compute ||
             operation.kind == GraphOperationKind::Host) {
    packed.index = operation.mix.value_or(0);
    packed.amount = operation.time.picoseconds();
  }
  operations_.push_back(packed);
  return OperationId(static_cast<std::uint32_t>(operations_.size() - 1));
}

OperationId OperationGraph::add_compute(StreamId stream, std::string_view name, StepPart part,
                                        SimTime time) {
  return add_compute(stream, GraphName{.text = add_name(name)}, part, time);
}

OperationId OperationGraph::add_compute(StreamId stream, GraphName name, StepPart part,
                                        SimTime time) {
  return add({.kind = GraphOperationKind::Compute,
              .part = part,
              .stream = stream,
              .name = name,
              .time = time});
}

OperationId OperationGraph::add_compute(StreamId stream, std::string_view name, std::uint32_t mix) {
  CHECK(mix < mixes_.size(), "a mix of this graph");
  return add({.kind = GraphOperationKind::Compute,
              .stream = stream,
              .name = {.text = add_name(name)},
              .time = mixes_[mix].total(),
              .mix = mix});
}

OperationId OperationGraph::add_host(StreamId stream, std::string_view name, StepPart part,
                                     SimTime time) {
  return add_host(stream, GraphName{.text = add_name(name)}, part, time);
}

OperationId OperationGraph::add_host(StreamId stream, GraphName name, StepPart part, SimTime time) {
  return add({.kind = GraphOperationKind::Host,
              .part = part,
              .stream = stream,
              .name = name,
              .time = time});
}

OperationId OperationGraph::add_collective(StreamId stream, std::string_view name, StepPart part,
                                           const GraphCall& call) {
  return add_collective(stream, GraphName{.text = add_name(name)}, part, call);
}

OperationId OperationGraph::add_collective(StreamId stream, GraphName name, StepPart part,
                                           const GraphCall& call) {
  CHECK(call.communicator.value() < communicators_.size(), "a communicator of this graph");
  return add({.kind = GraphOperationKind::Collective,
              .part = part,
              .stream = stream,
              .name = name,
              .call = call});
}

OperationId OperationGraph::add_send(StreamId stream, std::string_view name, StepPart part,
                                     const GraphMessage& message) {
  return add_send(stream, GraphName{.text = add_name(name)}, part, message);
}

OperationId OperationGraph::add_send(StreamId stream, GraphName name, StepPart part,
                                     const GraphMessage& message) {
  return add({.kind = GraphOperationKind::Send,
              .part = part,
              .stream = stream,
              .name = name,
              .message = message});
}

OperationId OperationGraph::add_receive(StreamId stream, std::string_view name, StepPart part,
                                        const GraphMessage& message) {
  return add_receive(stream, GraphName{.text = add_name(name)}, part, message);
}

OperationId OperationGraph::add_receive(StreamId stream, GraphName name, StepPart part,
                                        const GraphMessage& message) {
  return add({.kind = GraphOperationKind::Receive,
              .part = part,
              .stream = stream,
              .name = name,
              .message = message});
}

void OperationGraph::add_dependency(OperationId before, OperationId after) {
  CHECK(before.value() < operations_.size() && after.value() < operations_.size(),
        "operations of this graph");
  dependencies_.push_back({.before = before, .after = after});
}

std::string OperationGraph::name_of(OperationId id) const {
  const GraphName& name = operations_[id.value()].name;
  const std::string text(names_[name.text.value()]);
  return name.number == 0 ? text : text + std::to_string(name.number);
}

std::string OperationGraph::describe(OperationId id) const {
  const GraphStream& stream = stream_of(id);
  return fmt::format("rank {}, {}: {}", stream.rank, stream.name, name_of(id));
}

void check(const OperationGraph& graph, std::string_view place) {
  GraphCheck(graph, place).run();
}

}  // namespace trainyard
