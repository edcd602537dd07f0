// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_runner.h"

#include <algorithm>
#include <vector>

#include "sim/random.h"
#include "support/effort.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

using namespace literals;

// Every call takes a microsecond for each byte that a rank sends, every message for each byte.
struct TimedRun {
  SteadyGroupTimes times = SteadyGroupTimes(1e6);
  TimedTraffic traffic = TimedTraffic(times);
  Simulator simulator;

  GraphResult run(const OperationGraph& graph, const GraphRunOptions& options = {}) {
    return run_graph(simulator, graph, traffic, options);
  }
};

OperationId add_call(OperationGraph& graph, StreamId stream, CommunicatorId communicator,
                     std::int64_t bytes, std::int32_t slowdown_ppm = 0) {
  return graph.add_collective(stream, "call", StepPart::Data,
                              {.communicator = communicator,
                               .operation = Operation::AllGather,
                               .size = Bytes(bytes),
                               .slowdown_ppm = slowdown_ppm});
}

}  // namespace

TEST_CASE("operations of a stream follow each other, streams run beside each other",
          "[graph_runner]") {
  OperationGraph graph(1);
  const StreamId a = graph.add_stream(0, "a");
  const StreamId b = graph.add_stream(0, "b");
  const OperationId first = graph.add_compute(a, "first", StepPart::Linear, 5_us);
  const OperationId second = graph.add_compute(a, "second", StepPart::Linear, 1_us);
  const OperationId beside = graph.add_compute(b, "beside", StepPart::Linear, 2_us);
  const OperationId after = graph.add_compute(b, "after", StepPart::Linear, 1_us);
  graph.add_dependency(first, after);
  TimedRun run;
  const GraphResult result = run.run(graph);
  REQUIRE(result.finished());
  REQUIRE(result.timings[second.value()].start == 5_us);
  REQUIRE(result.timings[beside.value()].end == 2_us);
  REQUIRE(result.timings[after.value()].start == 5_us);
  REQUIRE(result.timings[after.value()].cause == first);
  REQUIRE(result.finish == 6_us);
}

TEST_CASE("a call begins when its last member comes", "[graph_runner]") {
  OperationGraph graph(2);
  const StreamId a = graph.add_stream(0, "a");
  const StreamId b = graph.add_stream(1, "b");
  const CommunicatorId both = graph.add_communicator("both", {0, 1});
  graph.add_compute(b, "late", StepPart::Linear, 7_us);
  const OperationId early = add_call(graph, a, both, 4);  // 2 us.
  const OperationId late = add_call(graph, b, both, 4);
  TimedRun run;
  const GraphResult result = run.run(graph);
  REQUIRE(result.timings[early.value()].ready == 0_us);
  REQUIRE(result.timings[early.value()].start == 7_us);
  REQUIRE(result.timings[early.value()].starter == late);
  REQUIRE(result.timings[late.value()].end == 9_us);
}

TEST_CASE(
    "both ends of a buffered message are busy for its time, the receiver not before the "
    "sender",
    "[graph_runner]") {
  for (const SimTime receiver_late : {0_us, 2_us, 20_us}) {
    OperationGraph graph(2);
    const StreamId a = graph.add_stream(0, "a");
    const StreamId b = graph.add_stream(1, "b");
    const GraphMessage message{.peer = 1, .size = Bytes(3)};
    graph.add_compute(a, "work", StepPart::Linear, 5_us);
    const OperationId send = graph.add_send(a, "send", StepPart::Pipeline, message);
    graph.add_compute(b, "late", StepPart::Linear, receiver_late);
    const OperationId receive =
        graph.add_receive(b, "receive", StepPart::Pipeline, {.peer = 0, .size = Bytes(3)});
    TimedRun run;
    const GraphResult result = run.run(graph);
    REQUIRE(result.timings[send.value()].end == 8_us);
    REQUIRE(result.timings[receive.value()].end == std::max(5_us, receiver_late) + 3_us);
  }
}

TEST_CASE("both ends of a rendezvous begin and end together", "[graph_runner]") {
  for (const SimTime receiver_late : {0_us, 20_us}) {
    OperationGraph graph(2);
    const StreamId a = graph.add_stream(0, "a");
    const StreamId b = graph.add_stream(1, "b");
    graph.add_compute(a, "work", StepPart::Linear, 5_us);
    const OperationId send =
        graph.add_send(a, "send", StepPart::Pipeline,
                       {.peer = 1, .size = Bytes(3), .handover = Handover::Rendezvous});
    graph.add_compute(b, "late", StepPart::Linear, receiver_late);
    const OperationId receive =
        graph.add_receive(b, "receive", StepPart::Pipeline, {.peer = 0, .size = Bytes(3)});
    TimedRun run;
    const GraphResult result = run.run(graph);
    const SimTime end = std::max(5_us, receiver_late) + 3_us;
    REQUIRE(result.timings[send.value()].end == end);
    REQUIRE(result.timings[receive.value()].end == end);
  }
}

TEST_CASE("traffic overlapped with computation takes the longer of both and a share of the shorter",
          "[graph_runner]") {
  const std::int32_t share_ppm = 250'000;
  for (const int traffic : {2, 8, 30}) {
    for (const int pieces : {1, 4}) {
      OperationGraph graph(2);
      const CommunicatorId both = graph.add_communicator("both", {0, 1});
      for (const int rank : {0, 1}) {
        const StreamId compute = graph.add_stream(rank, "compute");
        for (int piece = 0; piece < pieces; ++piece) {
          graph.add_compute(compute, "work", StepPart::Linear, SimTime(16'000'000 / pieces));
        }
        add_call(graph, graph.add_stream(rank, "data"), both, 2 * traffic, share_ppm);
      }
      TimedRun run;
      const GraphResult result = run.run(graph);
      const SimTime time = microseconds(traffic);
      const SimTime shorter = std::min(time, 16_us);
      REQUIRE(result.finish == std::max(time, 16_us) + SimTime(shorter.picoseconds() / 4));
    }
  }
}

TEST_CASE("a call that only one of its ranks computes beside is slowed down for all",
          "[graph_runner]") {
  OperationGraph graph(2);
  const CommunicatorId both = graph.add_communicator("both", {0, 1});
  const StreamId compute = graph.add_stream(0, "compute");
  const OperationId work = graph.add_compute(compute, "work", StepPart::Linear, 4_us);
  const OperationId here = add_call(graph, graph.add_stream(0, "data"), both, 16, 500'000);
  const OperationId there = add_call(graph, graph.add_stream(1, "data"), both, 16, 500'000);
  TimedRun run;
  const GraphResult result = run.run(graph);
  REQUIRE(result.timings[work.value()].end == 6_us);
  REQUIRE(result.timings[work.value()].slowed == 2_us);
  REQUIRE(result.timings[work.value()].slowed_by == StepPart::Data);
  REQUIRE(result.timings[here.value()].end == 10_us);
  REQUIRE(result.timings[there.value()].end == 10_us);
}

TEST_CASE("slow ranks compute slower, each part of it", "[graph_runner]") {
  OperationGraph graph(2);
  StepParts parts;
  parts[StepPart::Linear] = 5_us;
  parts[StepPart::Attention] = 3_ps;
  const std::uint32_t mix = graph.add_mix(parts);
  const OperationId slow = graph.add_compute(graph.add_stream(0, "a"), "work", mix);
  const OperationId usual = graph.add_compute(graph.add_stream(1, "a"), "work", mix);
  TimedRun run;
  const GraphResult result = run.run(graph, {.compute_ppm = {1'500'000, 1'000'000}});
  REQUIRE(result.timings[slow.value()].end == SimTime(7'500'005));
  REQUIRE(result.timings[usual.value()].end == SimTime(5'000'003));
}

TEST_CASE("a graph that cannot end says who waits for whom", "[graph_runner]") {
  OperationGraph graph(2);
  const StreamId a = graph.add_stream(0, "a");
  const StreamId b = graph.add_stream(1, "b");
  const CommunicatorId x = graph.add_communicator("x", {0, 1});
  const CommunicatorId y = graph.add_communicator("y", {0, 1});
  add_call(graph, a, x, 4);
  const OperationId after = graph.add_compute(a, "after", StepPart::Linear, 1_us);
  add_call(graph, b, y, 4);
  const StreamId c = graph.add_stream(1, "c");
  graph.add_dependency(after, graph.add_compute(c, "later", StepPart::Linear, 1_us));
  TimedRun run;
  const GraphResult result = run.run(graph);
  REQUIRE_FALSE(result.finished());
  REQUIRE(result.waits.size() == 3);
  REQUIRE(result.waits[0] == "rank 0, a: call waits for a rank that never comes");
  REQUIRE(result.waits[1] == "rank 1, b: call waits for a rank that never comes");
  REQUIRE(result.waits[2] == "rank 1, c: later waits for rank 0, a: after");
}

TEST_CASE("random graphs give what a naive evaluation of their starts and ends gives",
          "[graph_runner]") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "graph");
    OperationGraph graph(4);
    std::vector<StreamId> streams;
    for (int rank = 0; rank < 4; ++rank) {
      streams.push_back(graph.add_stream(rank, "a"));
      streams.push_back(graph.add_stream(rank, "b"));
    }
    const CommunicatorId all = graph.add_communicator("all", {0, 1, 2, 3});
    std::vector<SimTime> free(streams.size());
    std::vector<SimTime> ends;
    for (int round = 0; round < 40; ++round) {
      if (random.below(8) == 0) {
        SimTime start;
        std::vector<std::size_t> used;
        const std::size_t side = random.below(2);
        for (std::size_t rank = 0; rank < 4; ++rank) {
          used.push_back(2 * rank + side);
          add_call(graph, streams[used.back()], all, 8);
          start = std::max(start, free[used.back()]);
        }
        for (const std::size_t stream : used) {
          free[stream] = start + 6_us;
          ends.push_back(free[stream]);
        }
        continue;
      }
      const std::size_t stream = random.below(streams.size());
      const SimTime time = microseconds(static_cast<std::int64_t>(random.below(5)));
      const OperationId id = graph.add_compute(streams[stream], "work", StepPart::Linear, time);
      SimTime start = free[stream];
      for (std::uint64_t count = ends.empty() ? 0 : random.below(3); count > 0; --count) {
        const std::size_t before = random.below(ends.size());
        graph.add_dependency(OperationId(static_cast<std::uint32_t>(before)), id);
        start = std::max(start, ends[before]);
      }
      free[stream] = start + time;
      ends.push_back(free[stream]);
    }
    REQUIRE_NOTHROW(check(graph, "test"));
    TimedRun run;
    const GraphResult result = run.run(graph);
    REQUIRE(result.finished());
    for (std::size_t id = 0; id < ends.size(); ++id) {
      REQUIRE(result.timings[id].end == ends[id]);
    }
  }
}

TEST_CASE("a stream without an order runs one at a time or all at once", "[graph_runner]") {
  OperationGraph graph(1);
  const StreamId late = graph.add_stream(0, "late");
  const StreamId ready = graph.add_stream(0, "ready", StreamOrder::Ready);
  const StreamId free = graph.add_stream(0, "free", StreamOrder::Free);
  const OperationId work = graph.add_compute(late, "work", StepPart::Linear, 3_us);
  const OperationId first = graph.add_compute(ready, "listed first", StepPart::Linear, 1_us);
  graph.add_dependency(work, first);
  const OperationId second = graph.add_compute(ready, "ready first", StepPart::Linear, 5_us);
  const OperationId third = graph.add_compute(ready, "ready as well", StepPart::Linear, 2_us);
  const OperationId a = graph.add_compute(free, "a", StepPart::Linear, 4_us);
  const OperationId b = graph.add_compute(free, "b", StepPart::Linear, 6_us);
  check(graph, "test");
  TimedRun run;
  const GraphResult result = run.run(graph);
  REQUIRE(result.finished());
  REQUIRE(result.timings[second.value()].start == 0_us);
  REQUIRE(result.timings[third.value()].start == 5_us);
  REQUIRE(result.timings[third.value()].cause == second);
  REQUIRE(result.timings[first.value()].start == 7_us);
  REQUIRE(result.timings[first.value()].cause == third);
  REQUIRE(result.timings[a.value()].end == 4_us);
  REQUIRE(result.timings[b.value()].end == 6_us);
}

TEST_CASE("an eager message ends at its receiver when it has come and is asked for",
          "[graph_runner]") {
  for (const SimTime receiver_late : {0_us, 6_us, 20_us}) {
    OperationGraph graph(2);
    const StreamId a = graph.add_stream(0, "a");
    const StreamId b = graph.add_stream(1, "b");
    graph.add_compute(a, "work", StepPart::Linear, 5_us);
    const OperationId send = graph.add_send(
        a, "send", StepPart::Pipeline, {.peer = 1, .size = Bytes(3), .handover = Handover::Eager});
    graph.add_compute(b, "late", StepPart::Linear, receiver_late);
    const OperationId receive =
        graph.add_receive(b, "receive", StepPart::Pipeline,
                          {.peer = 0, .size = Bytes(3), .handover = Handover::Eager});
    check(graph, "test");
    TimedRun run;
    const GraphResult result = run.run(graph);
    REQUIRE(result.timings[send.value()].end == 8_us);
    REQUIRE(result.timings[receive.value()].end == std::max(8_us, receiver_late));
  }
}

}  // namespace trainyard
