// SPDX-License-Identifier: Apache-2.0
// Lists who meets whom in an operation graph, and who waits for whom, in flat arrays: graphs of
// traces have millions of operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "parallelism/graph/operation_graph.h"

namespace trainyard {

// The calls and messages of a graph, numbered in the order of their first members: each is an event
// on several ranks at once.
class GraphMeetings {
 public:
  explicit GraphMeetings(const OperationGraph& graph);

  [[nodiscard]] std::size_t size() const { return first_.size() - 1; }
  // For a call those that make it, in the order in which they were added; for a message the send,
  // then the receive. Some may be missing.
  [[nodiscard]] std::span<const OperationId> members(std::uint32_t meeting) const {
    return std::span(members_).subspan(first_[meeting], first_[meeting + 1] - first_[meeting]);
  }
  // Members, where nobody is missing.
  [[nodiscard]] std::size_t expected(const OperationGraph& graph, std::uint32_t meeting) const;
  // The meeting of a call or message.
  [[nodiscard]] std::uint32_t of(OperationId id) const { return of_operation_[id.value()]; }

 private:
  void join_calls(const OperationGraph& graph);
  void pair_messages(const OperationGraph& graph);
  void list_members(const OperationGraph& graph);

  std::vector<std::size_t> present_;  // Members in the graph of each communicator.
  std::vector<std::uint32_t> first_;  // Index of the first member by meeting, and the end.
  std::vector<OperationId> members_;
  // While meetings are made, the operation that each one joins; its own number for the first.
  std::vector<std::uint32_t> of_operation_;
};

// Returns the number of the call for its communicator on its rank, or of the message for its end,
// its peer and its tag.
[[nodiscard]] int meeting_number(const OperationGraph& graph, OperationId id);

// Calls `use(before, after)` for the dependencies that streams make, then for those that were
// added.
template <typename Use>
void for_each_wait(const OperationGraph& graph, const Use& use) {
  std::vector<std::optional<OperationId>> last(graph.streams().size());
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    const OperationId id(index);
    if (graph.stream_of(id).order != StreamOrder::Listed) {
      continue;
    }
    std::optional<OperationId>& before = last[graph.operation(id).stream.value()];
    if (before) {
      use(*before, id);
    }
    before = id;
  }
  for (const GraphDependency& each : graph.dependencies()) {
    use(each.before, each.after);
  }
}

// Lists which operations wait for which, by their streams and dependencies.
struct GraphSuccessors {
  // The operations that wait for operation i: next[first[i]] to next[first[i + 1] - 1], the one on
  // its stream first.
  std::vector<std::uint32_t> first;
  std::vector<OperationId> next;
  std::vector<std::uint32_t> waits;  // Number of operations that each operation waits for.
};
[[nodiscard]] GraphSuccessors successors_of(const OperationGraph& graph);

}  // namespace trainyard
