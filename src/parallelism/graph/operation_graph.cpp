// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/operation_graph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(as_index(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The dependencies that streams make, then those that were added.
std::vector<GraphDependency> all_dependencies(const OperationGraph& graph) {
  std::vector<GraphDependency> all;
  std::vector<std::optional<OperationId>> last(graph.streams().size());
  for (std::uint32_t id = 0; id < graph.operations().size(); ++id) {
    if (graph.stream_of(OperationId(id)).order != StreamOrder::Listed) {
      continue;
    }
    std::optional<OperationId>& before = last[graph.operations()[id].stream.value()];
    if (before) {
      all.push_back({.before = *before, .after = OperationId(id)});
    }
    before = OperationId(id);
  }
  all.insert(all.end(), graph.dependencies().begin(), graph.dependencies().end());
  return all;
}

GraphSuccessors successors_of(const std::vector<GraphDependency>& dependencies,
                              std::size_t operations) {
  GraphSuccessors result{.first = std::vector<std::size_t>(operations + 1),
                         .next = std::vector<OperationId>(dependencies.size()),
                         .waits = std::vector<std::uint32_t>(operations)};
  for (const GraphDependency& each : dependencies) {
    ++result.first[each.before.value() + 1];
    ++result.waits[each.after.value()];
  }
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  std::vector<std::size_t> filled(result.first.begin(), result.first.end() - 1);
  for (const GraphDependency& each : dependencies) {
    result.next[filled[each.before.value()]++] = each.after;
  }
  return result;
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
    meetings_ = meetings_of(graph_);
    for (const GraphMeeting& meeting : meetings_.meetings) {
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

  void check_meeting(const GraphMeeting& meeting) const {
    const OperationId first = meeting.members.front();
    const GraphOperation& operation = graph_.operation(first);
    if (operation.kind == GraphOperationKind::Collective) {
      check_call(meeting);
      return;
    }
    if (meeting.members.size() < 2) {
      const bool sends = operation.kind == GraphOperationKind::Send;
      fail("{}: expected {} of rank {} with tag {}, number {}, found none", graph_.describe(first),
           sends ? "a receive" : "a send", operation.message.peer, operation.message.tag,
           meeting.number);
    }
    const Bytes sent = operation.message.size;
    const Bytes received = graph_.operation(meeting.members.back()).message.size;
    if (sent != received) {
      fail("{}: expected {} as {} sends, found {}", graph_.describe(meeting.members.back()),
           to_string(sent), graph_.describe(first), to_string(received));
    }
  }

  void check_call(const GraphMeeting& meeting) const {
    const OperationId first = meeting.members.front();
    const GraphCall& call = graph_.operation(first).call;
    const GraphCommunicator& communicator = graph_.communicators()[call.communicator.value()];
    if (meeting.members.size() < meeting.expected) {
      for (const int rank : communicator.ranks) {
        const bool comes = std::any_of(meeting.members.begin(), meeting.members.end(),
                                       [&](OperationId id) { return graph_.rank_of(id) == rank; });
        if (!comes && graph_.has_rank(rank)) {
          fail("communicator {}: expected call {} of every rank, as {}, found none of rank {}",
               communicator.name, meeting.number, graph_.describe(first), rank);
        }
      }
    }
    for (const OperationId id : meeting.members) {
      const GraphCall& other = graph_.operation(id).call;
      if (!(other == call)) {
        fail("communicator {}: call {}: expected {} of {} as {}, found {} of {}: {}",
             communicator.name, meeting.number, text_of(call), to_string(call.size),
             graph_.describe(first), text_of(other), to_string(other.size), graph_.describe(id));
      }
    }
  }

  static std::string text_of(const GraphCall& call) {
    const std::string name(to_string(call.operation));
    return call.times == 1 ? name : fmt::format("{} times {}", call.times, name);
  }

  // Takes away, again and again, what waits for nothing; what meets is taken away together.
  void check_cycles() {
    const std::size_t count = graph_.operations().size();
    std::vector<std::uint32_t> node(count);  // Indexed by operation.
    std::iota(node.begin(), node.end(), 0U);
    std::vector<GraphDependency> edges = all_dependencies(graph_);
    for (const GraphMeeting& meeting : meetings_.meetings) {
      const OperationId first = meeting.members.front();
      const GraphOperation& operation = graph_.operation(first);
      if (operation.kind == GraphOperationKind::Send &&
          operation.message.handover != Handover::Rendezvous) {
        edges.push_back({.before = first, .after = meeting.members.back()});
        continue;
      }
      for (const OperationId id : meeting.members) {
        node[id.value()] = first.value();
      }
    }
    for (GraphDependency& edge : edges) {
      edge = {.before = OperationId(node[edge.before.value()]),
              .after = OperationId(node[edge.after.value()])};
    }
    std::sort(edges.begin(), edges.end(), [](const GraphDependency& a, const GraphDependency& b) {
      return std::tie(a.before, a.after) < std::tie(b.before, b.after);
    });
    GraphSuccessors left = successors_of(edges, count);
    std::vector<std::uint32_t> free;
    for (std::uint32_t id = 0; id < count; ++id) {
      if (left.waits[id] == 0) {
        free.push_back(id);
      }
    }
    while (!free.empty()) {
      const std::uint32_t id = free.back();
      free.pop_back();
      for (std::size_t edge = left.first[id]; edge < left.first[id + 1]; ++edge) {
        const std::uint32_t after = left.next[edge].value();
        if (--left.waits[after] == 0) {
          free.push_back(after);
        }
      }
    }
    if (std::any_of(left.waits.begin(), left.waits.end(), [](auto waits) { return waits > 0; })) {
      complain_of_cycle(edges, left.waits);
    }
  }

  // Goes from what waits to what it waits for until something comes again.
  [[noreturn]] void complain_of_cycle(const std::vector<GraphDependency>& edges,
                                      const std::vector<std::uint32_t>& waits) const {
    std::vector<std::optional<OperationId>> before(waits.size());
    std::optional<OperationId> at;
    for (const GraphDependency& edge : edges) {
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
  GraphMeetings meetings_;
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

OperationId OperationGraph::add(GraphOperation operation, std::string_view name) {
  CHECK(operation.stream.value() < streams_.size(), "a stream of this graph");
  CHECK(streams_[operation.stream.value()].order != StreamOrder::Ready ||
            operation.kind == GraphOperationKind::Compute ||
            operation.kind == GraphOperationKind::Host,
        "what meets others does not hold a stream that has no order of its own");
  auto found = name_ids_.find(name);
  if (found == name_ids_.end()) {
    found = name_ids_.emplace(name, static_cast<std::uint32_t>(names_.size())).first;
    names_.emplace_back(name);
  }
  operation.name = found->second;
  operations_.push_back(operation);
  return OperationId(static_cast<std::uint32_t>(operations_.size() - 1));
}

OperationId OperationGraph::add_compute(StreamId stream, std::string_view name, StepPart part,
                                        SimTime time) {
  return add({.kind = GraphOperationKind::Compute, .part = part, .stream = stream, .time = time},
             name);
}

OperationId OperationGraph::add_compute(StreamId stream, std::string_view name, std::uint32_t mix) {
  CHECK(mix < mixes_.size(), "a mix of this graph");
  return add({.kind = GraphOperationKind::Compute,
              .stream = stream,
              .time = mixes_[mix].total(),
              .mix = mix},
             name);
}

OperationId OperationGraph::add_host(StreamId stream, std::string_view name, StepPart part,
                                     SimTime time) {
  return add({.kind = GraphOperationKind::Host, .part = part, .stream = stream, .time = time},
             name);
}

OperationId OperationGraph::add_collective(StreamId stream, std::string_view name, StepPart part,
                                           const GraphCall& call) {
  CHECK(call.communicator.value() < communicators_.size(), "a communicator of this graph");
  return add({.kind = GraphOperationKind::Collective, .part = part, .stream = stream, .call = call},
             name);
}

OperationId OperationGraph::add_send(StreamId stream, std::string_view name, StepPart part,
                                     const GraphMessage& message) {
  return add({.kind = GraphOperationKind::Send, .part = part, .stream = stream, .message = message},
             name);
}

OperationId OperationGraph::add_receive(StreamId stream, std::string_view name, StepPart part,
                                        const GraphMessage& message) {
  return add(
      {.kind = GraphOperationKind::Receive, .part = part, .stream = stream, .message = message},
      name);
}

void OperationGraph::add_dependency(OperationId before, OperationId after) {
  CHECK(before.value() < operations_.size() && after.value() < operations_.size(),
        "operations of this graph");
  dependencies_.push_back({.before = before, .after = after});
}

std::string OperationGraph::describe(OperationId id) const {
  const GraphStream& stream = streams_[operation(id).stream.value()];
  return fmt::format("rank {}, {}: {}", stream.rank, stream.name, name_of(id));
}

GraphMeetings meetings_of(const OperationGraph& graph) {
  GraphMeetings result;
  result.of_operation.resize(graph.operations().size());
  std::vector<std::size_t> present(graph.communicators().size());  // Members.
  for (std::size_t index = 0; index < present.size(); ++index) {
    const std::vector<int>& ranks = graph.communicators()[index].ranks;
    present[index] = static_cast<std::size_t>(
        std::count_if(ranks.begin(), ranks.end(), [&](int rank) { return graph.has_rank(rank); }));
  }
  // Calls by communicator; how many a rank has made of it; messages by their ends and tag.
  std::vector<std::vector<std::uint32_t>> calls(present.size());
  std::map<std::pair<std::uint32_t, int>, std::uint32_t> made;
  struct Channel {
    std::vector<std::uint32_t> messages;
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
  };
  std::map<std::tuple<int, int, std::uint32_t>, Channel> channels;
  const auto join = [&](std::vector<std::uint32_t>& list, std::uint32_t number,
                        std::size_t expected) -> GraphMeeting& {
    while (list.size() <= number) {
      list.push_back(static_cast<std::uint32_t>(result.meetings.size()));
      result.meetings.push_back(
          {.members = {}, .expected = expected, .number = static_cast<int>(list.size() - 1)});
    }
    return result.meetings[list[number]];
  };
  for (std::uint32_t id = 0; id < graph.operations().size(); ++id) {
    const GraphOperation& operation = graph.operations()[id];
    const int rank = graph.rank_of(OperationId(id));
    if (operation.kind == GraphOperationKind::Collective) {
      const std::uint32_t communicator = operation.call.communicator.value();
      const std::uint32_t number = made[{communicator, rank}]++;
      GraphMeeting& meeting = join(calls[communicator], number, present[communicator]);
      meeting.members.emplace_back(id);
      result.of_operation[id] = calls[communicator][number];
    } else if (operation.kind == GraphOperationKind::Send ||
               operation.kind == GraphOperationKind::Receive) {
      const bool sends = operation.kind == GraphOperationKind::Send;
      const int peer = operation.message.peer;
      Channel& channel =
          channels[{sends ? rank : peer, sends ? peer : rank, operation.message.tag}];
      const std::uint32_t number = sends ? channel.sends++ : channel.receives++;
      GraphMeeting& meeting = join(channel.messages, number, 2);
      meeting.members.insert(sends ? meeting.members.begin() : meeting.members.end(),
                             OperationId(id));
      result.of_operation[id] = channel.messages[number];
    }
  }
  return result;
}

GraphSuccessors successors_of(const OperationGraph& graph) {
  return successors_of(all_dependencies(graph), graph.operations().size());
}

void check(const OperationGraph& graph, std::string_view place) {
  GraphCheck(graph, place).run();
}

}  // namespace trainyard
