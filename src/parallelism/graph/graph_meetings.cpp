// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_meetings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace trainyard {
namespace {

bool is_message(GraphOperationKind kind) {
  return kind == GraphOperationKind::Send || kind == GraphOperationKind::Receive;
}

// The rank that a message comes from.
int source_of(const OperationGraph& graph, OperationId id) {
  const GraphOperation& operation = graph.operation(id);
  return operation.kind == GraphOperationKind::Send ? graph.rank_of(id) : operation.message.peer;
}

// Sends and receives by the rank that they come from.
struct MessagesBySource {
  explicit MessagesBySource(const OperationGraph& graph) : first(as_index(graph.ranks()) + 1) {
    const auto count = static_cast<std::uint32_t>(graph.operations().size());
    const auto for_each = [&](const auto& use) {
      for (std::uint32_t id = 0; id < count; ++id) {
        if (is_message(graph.operation(OperationId(id)).kind)) {
          use(as_index(source_of(graph, OperationId(id))), OperationId(id));
        }
      }
    };
    for_each([&](std::size_t source, OperationId /*id*/) { ++first[source + 1]; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    messages.resize(first.back());
    std::vector<std::uint32_t> filled = first;
    for_each([&](std::size_t source, OperationId id) { messages[filled[source]++] = id; });
  }

  std::vector<std::uint32_t> first;
  std::vector<OperationId> messages;  // Rising for each source.
};

// An end of a message from one source, in the order of channels.
struct SourceMessage {
  int target = 0;
  std::uint32_t tag = 0;
  OperationId id;

  auto operator<=>(const SourceMessage&) const = default;
  [[nodiscard]] auto channel() const { return std::make_pair(target, tag); }
};

// Most files list them in that order.
void sort_if_needed(std::vector<SourceMessage>& messages) {
  if (!std::is_sorted(messages.begin(), messages.end())) {
    std::sort(messages.begin(), messages.end());
  }
}

}  // namespace

GraphMeetings::GraphMeetings(const OperationGraph& graph)
    : of_operation_(graph.operations().size()) {
  for (const GraphCommunicator& communicator : graph.communicators()) {
    present_.push_back(
        static_cast<std::size_t>(std::count_if(communicator.ranks.begin(), communicator.ranks.end(),
                                               [&](int rank) { return graph.has_rank(rank); })));
  }
  std::iota(of_operation_.begin(), of_operation_.end(), 0U);
  join_calls(graph);
  pair_messages(graph);
  list_members(graph);
}

std::size_t GraphMeetings::expected(const OperationGraph& graph, std::uint32_t meeting) const {
  const GraphOperation& operation = graph.operation(members(meeting).front());
  return operation.kind == GraphOperationKind::Collective
             ? present_[operation.call.communicator.value()]
             : 2;
}

// The n-th call of each rank joins the first that any rank makes as its n-th.
void GraphMeetings::join_calls(const OperationGraph& graph) {
  std::vector<std::vector<std::uint32_t>> calls(present_.size());  // First members, by number.
  std::map<std::pair<std::uint32_t, int>, std::uint32_t>
      made;  // The key is the communicator and the rank.
  for (std::uint32_t id = 0; id < of_operation_.size(); ++id) {
    const GraphOperation& operation = graph.operation(OperationId(id));
    if (operation.kind != GraphOperationKind::Collective) {
      continue;
    }
    const std::uint32_t communicator = operation.call.communicator.value();
    const std::uint32_t number = made[{communicator, graph.rank_of(OperationId(id))}]++;
    if (number == calls[communicator].size()) {
      calls[communicator].push_back(id);
    }
    of_operation_[id] = calls[communicator][number];
  }
}

// Pairs the n-th send from one rank to another with a tag with the n-th receive of it there.
void GraphMeetings::pair_messages(const OperationGraph& graph) {
  const MessagesBySource by_source(graph);
  std::vector<SourceMessage> sends;
  std::vector<SourceMessage> receives;
  for (std::size_t source = 0; source + 1 < by_source.first.size(); ++source) {
    sends.clear();
    receives.clear();
    for (std::size_t at = by_source.first[source]; at < by_source.first[source + 1]; ++at) {
      const OperationId id = by_source.messages[at];
      const GraphOperation& operation = graph.operation(id);
      const bool is_send = operation.kind == GraphOperationKind::Send;
      (is_send ? sends : receives)
          .push_back({.target = is_send ? operation.message.peer : graph.rank_of(id),
                      .tag = operation.message.tag,
                      .id = id});
    }
    sort_if_needed(sends);
    sort_if_needed(receives);
    auto send = sends.begin();
    for (const SourceMessage& receive : receives) {
      while (send != sends.end() && send->channel() < receive.channel()) {
        ++send;
      }
      if (send != sends.end() && send->channel() == receive.channel()) {
        const std::uint32_t first = std::min(send->id, receive.id).value();
        of_operation_[send->id.value()] = first;
        of_operation_[receive.id.value()] = first;
        ++send;
      }
    }
  }
}

void GraphMeetings::list_members(const OperationGraph& graph) {
  std::uint32_t meetings = 0;
  first_.push_back(0);
  for (std::uint32_t id = 0; id < of_operation_.size(); ++id) {
    const GraphOperationKind kind = graph.operation(OperationId(id)).kind;
    if (kind == GraphOperationKind::Compute || kind == GraphOperationKind::Host) {
      continue;
    }
    const std::uint32_t first = of_operation_[id];
    if (first == id) {
      of_operation_[id] = meetings++;
      first_.push_back(1);
    } else {
      of_operation_[id] = of_operation_[first];
      ++first_[of_operation_[id] + 1];
    }
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  members_.resize(first_.back());
  std::vector<std::uint32_t> filled(first_.begin(), first_.end() - 1);
  for (std::uint32_t id = 0; id < of_operation_.size(); ++id) {
    const GraphOperationKind kind = graph.operation(OperationId(id)).kind;
    if (kind != GraphOperationKind::Compute && kind != GraphOperationKind::Host) {
      members_[filled[of_operation_[id]]++] = OperationId(id);
      // The receive of a message may have come before its send.
      const std::uint32_t begin = first_[of_operation_[id]];
      if (kind == GraphOperationKind::Send && members_[begin] != OperationId(id)) {
        std::swap(members_[begin], members_[begin + 1]);
      }
    }
  }
}

int meeting_number(const OperationGraph& graph, OperationId id) {
  const GraphOperation& operation = graph.operation(id);
  int number = 0;
  for (std::uint32_t index = 0; index < id.value(); ++index) {
    const GraphOperation& other = graph.operation(OperationId(index));
    const bool is_alike =
        other.kind == operation.kind && graph.rank_of(OperationId(index)) == graph.rank_of(id) &&
        other.call.communicator == operation.call.communicator &&
        other.message.peer == operation.message.peer && other.message.tag == operation.message.tag;
    number += is_alike ? 1 : 0;
  }
  return number;
}

GraphSuccessors successors_of(const OperationGraph& graph) {
  const std::size_t operations = graph.operations().size();
  GraphSuccessors result{.first = std::vector<std::uint32_t>(operations + 1),
                         .next = {},
                         .waits = std::vector<std::uint32_t>(operations)};
  for_each_wait(graph, [&](OperationId before, OperationId after) {
    ++result.first[before.value() + 1];
    ++result.waits[after.value()];
  });
  std::partial_sum(result.first.begin(), result.first.end(), result.first.begin());
  result.next.resize(result.first.back());
  std::vector<std::uint32_t> filled(result.first.begin(), result.first.end() - 1);
  for_each_wait(graph, [&](OperationId before, OperationId after) {
    result.next[filled[before.value()]++] = after;
  });
  return result;
}

}  // namespace trainyard
