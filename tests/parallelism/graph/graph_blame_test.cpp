// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_blame.h"

#include <algorithm>
#include <vector>

#include "sim/random.h"
#include "support/effort.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

using namespace literals;

struct BlameRun {
  SteadyGroupTimes times = SteadyGroupTimes(1e6);
  TimedTraffic traffic = TimedTraffic(times);
  Simulator simulator;

  GraphResult run(const OperationGraph& graph) { return run_graph(simulator, graph, traffic); }
};

}  // namespace

TEST_CASE("exposed traffic, messages and waits have their names", "[graph_blame]") {
  OperationGraph graph(2);
  const StreamId a = graph.add_stream(0, "compute");
  const StreamId a_data = graph.add_stream(0, "data");
  const StreamId b = graph.add_stream(1, "compute");
  const CommunicatorId pair = graph.add_communicator("pair", {0, 1});
  const GraphCall call{.communicator = pair, .operation = Operation::AllGather, .size = Bytes(6)};
  // Rank 0: 5 us of work, of which a call of 3 us hides behind the last 2; then a message of 4.
  const OperationId first = graph.add_compute(a, "first", StepPart::Linear, 3_us);
  graph.add_compute(a, "second", StepPart::Attention, 2_us);
  const OperationId call_a = graph.add_collective(a_data, "call", StepPart::Data, call);
  graph.add_dependency(first, call_a);
  const OperationId last = graph.add_compute(a, "last", StepPart::Optimizer, 1_us);
  graph.add_dependency(call_a, last);
  graph.add_send(a, "send", StepPart::Pipeline, {.peer = 1, .size = Bytes(4)});
  // Rank 1 comes to the call at once and computes when the message is there.
  graph.add_collective(b, "call", StepPart::Data, call);
  graph.add_receive(b, "receive", StepPart::Pipeline, {.peer = 0, .size = Bytes(4)});
  graph.add_compute(b, "end", StepPart::Head, 2_us);
  BlameRun run;
  const GraphResult result = run.run(graph);
  REQUIRE(result.finish == 13_us);
  const std::vector<StepParts> parts = blame_of(graph, result);
  StepParts of_first;
  of_first[StepPart::Linear] = 3_us;
  of_first[StepPart::Attention] = 2_us;
  of_first[StepPart::Data] = 1_us;
  of_first[StepPart::Optimizer] = 1_us;
  of_first[StepPart::Pipeline] = 4_us;
  of_first[StepPart::Bubble] = 2_us;
  REQUIRE(parts[0] == of_first);
  StepParts of_second;
  of_second[StepPart::Data] = 3_us;
  of_second[StepPart::Bubble] = 4_us;
  of_second[StepPart::Pipeline] = 4_us;
  of_second[StepPart::Head] = 2_us;
  REQUIRE(parts[1] == of_second);
}

TEST_CASE("the host shows where the GPU waits for it", "[graph_blame]") {
  OperationGraph graph(1);
  const StreamId compute = graph.add_stream(0, "compute");
  const StreamId host = graph.add_stream(0, "host");
  const OperationId launch = graph.add_host(host, "launch", StepPart::Host, 5_us);
  graph.add_compute(compute, "first", StepPart::Linear, 3_us);
  const OperationId second = graph.add_compute(compute, "second", StepPart::Linear, 1_us);
  graph.add_dependency(launch, second);
  BlameRun run;
  const StepParts parts = blame_of(graph, run.run(graph)).front();
  REQUIRE(parts[StepPart::Linear] == 4_us);
  REQUIRE(parts[StepPart::Host] == 2_us);
}

TEST_CASE("shares add up to what is shared out", "[graph_blame]") {
  StepParts parts;
  parts[StepPart::Linear] = 7_ps;
  parts[StepPart::Attention] = 5_ps;
  parts[StepPart::Head] = 5_ps;
  for (const std::int64_t total : {0, 1, 10, 17, 40}) {
    REQUIRE(shared_out(parts, SimTime(total)).total() == SimTime(total));
  }
  REQUIRE(shared_out(parts, 34_ps)[StepPart::Head] == 10_ps);
}

TEST_CASE("the parts of every rank of random graphs add up to the run", "[graph_blame]") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "graph");
    OperationGraph graph(3);
    std::vector<StreamId> streams;
    for (int index = 0; index < 9; ++index) {
      streams.push_back(graph.add_stream(index / 3, "stream"));
    }
    const CommunicatorId all = graph.add_communicator("all", {0, 1, 2});
    std::vector<OperationId> added;
    for (int round = 0; round < 40; ++round) {
      const std::size_t stream = random.below(streams.size());
      const std::uint64_t kind = random.below(6);
      if (kind == 0) {
        for (std::size_t rank = 0; rank < 3; ++rank) {
          added.push_back(graph.add_collective(streams[3 * rank + stream % 3], "call",
                                               StepPart::Tensor,
                                               {.communicator = all,
                                                .operation = Operation::AllGather,
                                                .size = Bytes(9),
                                                .slowdown_ppm = 300'000}));
        }
        continue;
      }
      if (kind == 1) {
        const int rank = static_cast<int>(stream / 3);
        const int peer = (rank + 1) % 3;
        graph.add_send(streams[stream], "send", StepPart::Pipeline,
                       {.peer = peer, .size = Bytes(3)});
        added.push_back(graph.add_receive(streams[3 * static_cast<std::size_t>(peer)], "receive",
                                          StepPart::Pipeline, {.peer = rank, .size = Bytes(3)}));
        continue;
      }
      const auto time = static_cast<std::int64_t>(random.below(5'000'000));
      const OperationId id =
          graph.add_compute(streams[stream], "work", StepPart::Linear, SimTime(time));
      if (!added.empty()) {
        graph.add_dependency(added[random.below(added.size())], id);
      }
      added.push_back(id);
    }
    REQUIRE_NOTHROW(check(graph, "test"));
    BlameRun run;
    const GraphResult result = run.run(graph);
    for (const StepParts& parts : blame_of(graph, result)) {
      REQUIRE(parts.total() == result.finish);
      REQUIRE(*std::min_element(parts.times.begin(), parts.times.end()) >= SimTime());
    }
  }
}

}  // namespace trainyard
