// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/operation_graph.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

using namespace literals;

// Two ranks with a stream each and a communicator of both.
struct PairGraph {
  OperationGraph graph = OperationGraph(2);
  StreamId first = graph.add_stream(0, "compute");
  StreamId second = graph.add_stream(1, "compute");
  CommunicatorId pair = graph.add_communicator("pair", {0, 1});

  OperationId call(StreamId stream, Operation operation = Operation::AllReduce,
                   Bytes size = Bytes(64)) {
    return graph.add_collective(stream, "call", StepPart::Tensor,
                                {.communicator = pair, .operation = operation, .size = size});
  }
  OperationId send(StreamId stream, int peer, Bytes size = Bytes(8), std::uint32_t tag = 0) {
    return graph.add_send(stream, "send", StepPart::Pipeline,
                          {.peer = peer, .size = size, .tag = tag});
  }
  OperationId receive(StreamId stream, int peer, Bytes size = Bytes(8), std::uint32_t tag = 0) {
    return graph.add_receive(stream, "receive", StepPart::Pipeline,
                             {.peer = peer, .size = size, .tag = tag});
  }
  [[nodiscard]] std::string complaint() const {
    try {
      check(graph, "test");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

}  // namespace

TEST_CASE("an operation is what was added, and its name may end with a number",
          "[operation_graph]") {
  PairGraph pair;
  StepParts parts;
  parts[StepPart::Attention] = 3_ns;
  const NameId line = pair.graph.add_name("line ");
  const OperationId call = pair.call(pair.first, Operation::AllGather);
  const OperationId send =
      pair.graph.add_send(pair.first, {.text = line, .number = 12}, StepPart::Pipeline,
                          {.peer = 1,
                           .size = Bytes(1) * (std::int64_t{1} << 40),
                           .tag = 0xffff'fffe,
                           .handover = Handover::Eager});
  const OperationId mixed = pair.graph.add_compute(pair.second, "mixed", pair.graph.add_mix(parts));
  const OperationId host = pair.graph.add_host(pair.second, "host", StepPart::Host, 7_ns);
  REQUIRE(pair.graph.add_name("line ") == line);
  REQUIRE(pair.graph.name_of(send) == "line 12");
  REQUIRE(pair.graph.name_of(call) == "call");
  REQUIRE(pair.graph.operation(call).call ==
          GraphCall{.communicator = pair.pair, .operation = Operation::AllGather, .size = 64_B});
  const GraphMessage message = pair.graph.operation(send).message;
  REQUIRE(message.peer == 1);
  REQUIRE(message.size.count() == std::int64_t{1} << 40);
  REQUIRE(message.tag == 0xffff'fffe);
  REQUIRE(message.handover == Handover::Eager);
  REQUIRE(pair.graph.operation(mixed).mix == 0U);
  REQUIRE(pair.graph.operation(mixed).time == 3_ns);
  REQUIRE_FALSE(pair.graph.operation(host).mix);
  REQUIRE(pair.graph.operation(host).part == StepPart::Host);
  std::vector<GraphOperationKind> kinds;
  for (const GraphOperation& operation : pair.graph.operations()) {
    kinds.push_back(operation.kind);
  }
  REQUIRE(kinds ==
          std::vector<GraphOperationKind>{GraphOperationKind::Collective, GraphOperationKind::Send,
                                          GraphOperationKind::Compute, GraphOperationKind::Host});
}

TEST_CASE("a folded graph asks nothing of ranks that are not in it", "[operation_graph]") {
  OperationGraph graph(8, {4, 0});
  REQUIRE(graph.is_folded());
  REQUIRE(graph.has_rank(4));
  REQUIRE_FALSE(graph.has_rank(5));
  const StreamId stream = graph.add_stream(4, "tensor");
  const CommunicatorId four = graph.add_communicator("four", {4, 5, 6, 7});
  graph.add_collective(stream, "call", StepPart::Tensor, {.communicator = four, .size = Bytes(4)});
  REQUIRE_NOTHROW(check(graph, "test"));
}

TEST_CASE("a call that a rank does not make is named", "[operation_graph]") {
  PairGraph pair;
  pair.call(pair.first);
  REQUIRE(pair.complaint() ==
          "test: communicator pair: expected call 0 of every rank, as rank 0, compute: call, found "
          "none of rank 1");
}

TEST_CASE("calls that differ are named", "[operation_graph]") {
  PairGraph pair;
  pair.call(pair.first);
  pair.call(pair.second, Operation::AllGather, Bytes(128));
  REQUIRE(pair.complaint() ==
          "test: communicator pair: call 0: expected all_reduce of 64B as rank 0, compute: call, "
          "found all_gather of 128B: rank 1, compute: call");
}

TEST_CASE("sends without receives, and of other sizes, are named", "[operation_graph]") {
  PairGraph pair;
  pair.send(pair.first, 1, Bytes(8), 3);
  REQUIRE(pair.complaint() ==
          "test: rank 0, compute: send: expected a receive of rank 1 with tag 3, number 0, found "
          "none");
  pair.receive(pair.second, 0, Bytes(9), 3);
  REQUIRE(pair.complaint() ==
          "test: rank 1, compute: receive: expected 8B as rank 0, compute: send sends, found 9B");
  PairGraph alone;
  alone.receive(alone.second, 0);
  REQUIRE(alone.complaint() ==
          "test: rank 1, compute: receive: expected a send of rank 0 with tag 0, number 0, found "
          "none");
}

TEST_CASE("ranks, members and peers out of range are named", "[operation_graph]") {
  PairGraph peer;
  peer.send(peer.first, 2);
  REQUIRE(peer.complaint() ==
          "test: rank 0, compute: send: expected another rank of the graph as its peer, found 2");
  PairGraph twice;
  twice.graph.add_communicator("odd", {1, 1});
  REQUIRE(twice.complaint() == "test: communicator odd: expected each rank once, found 1 twice");
  PairGraph outside;
  outside.graph.add_communicator("odd", {0, 5});
  REQUIRE(outside.complaint() == "test: communicator odd: expected ranks from 0 to 1, found 5");
  PairGraph stranger;
  const CommunicatorId other = stranger.graph.add_communicator("other", {1});
  stranger.graph.add_collective(stranger.first, "call", StepPart::Data, {.communicator = other});
  REQUIRE(stranger.complaint() ==
          "test: rank 0, compute: call: expected a communicator that the rank is in, found other");
  PairGraph far;
  far.graph.add_stream(9, "compute");
  REQUIRE(far.complaint() ==
          "test: stream compute: expected a rank of the graph, which has 2 of 2, found 9");
}

TEST_CASE("operations that wait for themselves are named", "[operation_graph]") {
  PairGraph crossed;  // Each rank makes the other's first call its second.
  const CommunicatorId other = crossed.graph.add_communicator("other", {0, 1});
  const GraphCall second{.communicator = other};
  crossed.call(crossed.first);
  crossed.graph.add_collective(crossed.first, "other", StepPart::Data, second);
  crossed.graph.add_collective(crossed.second, "other", StepPart::Data, second);
  crossed.call(crossed.second);
  REQUIRE(crossed.complaint().find("test: expected operations that can all run, found a cycle of "
                                   "2: rank 0, compute: ") == 0);
  PairGraph waits;
  const OperationId before = waits.graph.add_compute(waits.first, "a", StepPart::Linear, 1_ns);
  const OperationId after = waits.graph.add_compute(waits.second, "b", StepPart::Linear, 1_ns);
  waits.graph.add_dependency(before, after);
  REQUIRE(waits.complaint().empty());
  waits.graph.add_dependency(after, before);
  REQUIRE(waits.complaint() ==
          "test: expected operations that can all run, found a cycle of 2: rank 0, compute: a "
          "waits for rank 1, compute: b, which waits for rank 0, compute: a");
}

TEST_CASE("two ranks that send before they receive wait for each other only with a rendezvous",
          "[operation_graph]") {
  for (const Handover handover : {Handover::Buffered, Handover::Rendezvous}) {
    PairGraph pair;
    for (const int rank : {0, 1}) {
      const StreamId stream = rank == 0 ? pair.first : pair.second;
      pair.graph.add_send(stream, "send", StepPart::Pipeline,
                          {.peer = 1 - rank, .size = Bytes(8), .tag = 0, .handover = handover});
      pair.receive(stream, 1 - rank);
    }
    REQUIRE(pair.complaint().empty() == (handover == Handover::Buffered));
  }
}

}  // namespace trainyard
