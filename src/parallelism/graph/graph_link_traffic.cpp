// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_link_traffic.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "parallelism/traffic/link_traffic.h"

namespace trainyard {
namespace {

struct GraphCounts {
  std::map<std::pair<CommunicatorId, StepPart>, RepeatedCalls> calls;
  std::map<std::tuple<int, int, StepPart>, double> messages;  // Bytes from one rank to another.
};

// Counts each call at the first of its members that is in the graph, each message where it is sent.
GraphCounts counts_of(const OperationGraph& graph) {
  std::vector<int> counted;  // The rank that counts, by communicator.
  for (const GraphCommunicator& communicator : graph.communicators()) {
    const auto first =
        std::ranges::find_if(communicator.ranks, [&](int rank) { return graph.has_rank(rank); });
    counted.push_back(first == communicator.ranks.end() ? -1 : *first);
  }
  GraphCounts counts;
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    const OperationId id(index);
    const int rank = graph.rank_of(id);
    const GraphOperation operation = graph.operation(id);
    const GraphCall& call = operation.call;
    if (operation.kind == GraphOperationKind::Send) {
      counts.messages[{rank, operation.message.peer, operation.part}] +=
          static_cast<double>(operation.message.size.count());
    } else if (operation.kind == GraphOperationKind::Collective &&
               counted[call.communicator.value()] == rank) {
      counts.calls[{call.communicator, operation.part}]
                  [{.operation = call.operation, .size = call.size}] += call.times;
    }
  }
  return counts;
}

// A call of all ranks is one call, however many of them are in the graph.
bool represents_others(const OperationGraph& graph, const GraphCounts& counts) {
  if (!graph.is_folded()) {
    return false;
  }
  for (const auto& [key, calls] : counts.calls) {
    const auto ranks = graph.communicators()[key.first.value()].ranks.size();
    if (ranks < static_cast<std::size_t>(graph.ranks())) {
      return true;
    }
  }
  return !counts.messages.empty();
}

}  // namespace

std::optional<std::vector<LinkTraffic>> graph_link_traffic(
    const Cluster& cluster, const OperationGraph& graph, const CallRuntime& runtime,
    const std::function<std::string_view(StepPart)>& purpose) {
  if (graph.ranks() > kMaxCountedRanks) {
    return std::nullopt;
  }
  const GraphCounts counts = counts_of(graph);
  if (represents_others(graph, counts)) {
    return std::nullopt;
  }
  CallTraffic counter(cluster, runtime);
  for (const auto& [key, calls] : counts.calls) {
    counter.add_calls(purpose(key.second), graph.communicators()[key.first.value()].ranks, calls);
  }
  for (const auto& [key, bytes] : counts.messages) {
    const auto& [from, to, part] = key;
    counter.add_message(purpose(part), from, to, bytes);
  }
  return counter.take();
}

}  // namespace trainyard
