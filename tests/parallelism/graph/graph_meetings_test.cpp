// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_meetings.h"

#include <map>
#include <tuple>
#include <vector>

#include "sim/random.h"
#include "support/effort.h"

namespace trainyard {
namespace {

using namespace literals;

// Counts in maps who meets whom, numbered by first members.
std::vector<std::vector<OperationId>> naive_meetings(const OperationGraph& graph) {
  std::map<std::tuple<bool, int, int, std::uint32_t, int>, std::vector<OperationId>> met;
  std::map<std::tuple<GraphOperationKind, int, int, std::uint32_t>, int> made;
  for (std::uint32_t index = 0; index < graph.operations().size(); ++index) {
    const OperationId id(index);
    const GraphOperation& operation = graph.operation(id);
    const int rank = graph.rank_of(id);
    const bool calls = operation.kind == GraphOperationKind::Collective;
    const bool sends = operation.kind == GraphOperationKind::Send;
    if (!calls && !sends && operation.kind != GraphOperationKind::Receive) {
      continue;
    }
    const std::uint32_t what = calls ? operation.call.communicator.value() : operation.message.tag;
    const int peer = operation.message.peer;
    const int number = made[{operation.kind, rank, peer, what}]++;
    REQUIRE(meeting_number(graph, id) == number);
    std::vector<OperationId>& members =
        calls ? met[{true, 0, 0, what, number}]
              : met[{false, sends ? rank : peer, sends ? peer : rank, what, number}];
    members.insert(sends ? members.begin() : members.end(), id);
  }
  std::map<OperationId, std::vector<OperationId>> by_first;
  for (const auto& [key, members] : met) {
    by_first[*std::min_element(members.begin(), members.end())] = members;
  }
  std::vector<std::vector<OperationId>> all;
  for (const auto& [first, members] : by_first) {
    all.push_back(members);
  }
  return all;
}

}  // namespace

TEST_CASE("random graphs meet as counting in maps says", "[graph_meetings]") {
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "meetings");
    OperationGraph graph(4);
    const CommunicatorId all = graph.add_communicator("all", {0, 1, 2, 3});
    const CommunicatorId two = graph.add_communicator("two", {0, 2});
    std::vector<StreamId> streams;
    for (int rank = 0; rank < 4; ++rank) {
      streams.push_back(graph.add_stream(rank, "stream"));
    }
    for (int each = 0; each < 200; ++each) {
      const auto rank = static_cast<int>(random.below(4));
      const StreamId stream = streams[as_index(rank)];
      const GraphMessage message{.peer = (rank + 1 + static_cast<int>(random.below(3))) % 4,
                                 .size = 1_B,
                                 .tag = static_cast<std::uint32_t>(random.below(2))};
      switch (random.below(4)) {
        case 0:
          graph.add_send(stream, "send", StepPart::Pipeline, message);
          break;
        case 1:
          graph.add_receive(stream, "receive", StepPart::Pipeline, message);
          break;
        case 2:
          graph.add_collective(stream, "call", StepPart::Tensor,
                               {.communicator = rank % 2 == 0 && random.below(2) == 0 ? two : all});
          break;
        default:
          graph.add_compute(stream, "work", StepPart::Linear, 1_ns);
          break;
      }
    }
    const GraphMeetings meetings(graph);
    const std::vector<std::vector<OperationId>> expected = naive_meetings(graph);
    REQUIRE(meetings.size() == expected.size());
    for (std::uint32_t meeting = 0; meeting < meetings.size(); ++meeting) {
      const std::span<const OperationId> members = meetings.members(meeting);
      REQUIRE(std::vector<OperationId>(members.begin(), members.end()) == expected[meeting]);
      for (const OperationId id : members) {
        REQUIRE(meetings.of(id) == meeting);
      }
      const GraphOperation first = graph.operation(members.front());
      const bool is_of_all =
          first.kind == GraphOperationKind::Collective && first.call.communicator == all;
      REQUIRE(meetings.expected(graph, meeting) == (is_of_all ? 4 : 2));
    }
  }
}

TEST_CASE("operations wait for the one before them on their stream, and for what they depend on",
          "[graph_meetings]") {
  OperationGraph graph(2);
  const StreamId first = graph.add_stream(0, "compute");
  const StreamId second = graph.add_stream(1, "compute");
  const OperationId a = graph.add_compute(first, "a", StepPart::Linear, 1_ns);
  const OperationId b = graph.add_compute(second, "b", StepPart::Linear, 1_ns);
  const OperationId c = graph.add_compute(first, "c", StepPart::Linear, 1_ns);
  const OperationId d = graph.add_compute(second, "d", StepPart::Linear, 1_ns);
  graph.add_dependency(a, d);
  const GraphSuccessors successors = successors_of(graph);
  REQUIRE(successors.first == std::vector<std::uint32_t>{0, 2, 3, 3, 3});
  REQUIRE(successors.next == std::vector<OperationId>{c, d, d});
  REQUIRE(successors.waits == std::vector<std::uint32_t>{0, 0, 1, 2});
  REQUIRE(b == OperationId(1));
}

}  // namespace trainyard
