// SPDX-License-Identifier: Apache-2.0
// How a schedule runs: start, waiting, the contract at the end, and the trace.
#include "support/catch.h"

#include "collectives/run/executor.h"

#include <string>
#include <vector>

#include "network/engines/make_network.h"
#include "support/collective_run.h"
#include "support/copied_schedule.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr ChunkRange kWhole{.first = 0, .count = 1};

// A hand-made schedule of one chunk and two ranks with a connection each way.
StoredSchedule two_ranks(std::vector<StoredSchedule::Lane> lanes) {
  ScheduleShape shape;
  shape.operation = Operation::AllReduce;
  shape.algorithm = "hand-made";
  shape.ranks = 2;
  shape.chunk_count = 1;
  shape.lanes = static_cast<std::uint32_t>(lanes.size());
  shape.connections = 2;
  return {shape,
          std::move(lanes),
          {{.source = RankId(0), .target = RankId(1)}, {.source = RankId(1), .target = RankId(0)}}};
}

const Step kSend01{.kind = StepKind::Send, .connection = 0, .chunks = kWhole};
const Step kReceive01{.kind = StepKind::Receive, .connection = 0, .chunks = kWhole};
const Step kSend10{.kind = StepKind::Send, .connection = 1, .chunks = kWhole};
const Step kReceive10{.kind = StepKind::Receive, .connection = 1, .chunks = kWhole};

std::string violation_of(std::vector<StoredSchedule::Lane> lanes, Bytes size) {
  const StoredSchedule schedule = two_ranks(std::move(lanes));
  const CollectiveRun flow = run_schedule(idle_switch(2), schedule, size, Fidelity::Flow);
  const CollectiveRun other = run_schedule(idle_switch(2), schedule, size, Fidelity::Analytical);
  REQUIRE(flow.violation == other.violation);
  return flow.violation.value_or("none");
}

TEST_CASE("a schedule that keeps its contract ends without a complaint") {
  REQUIRE(violation_of({{.rank = RankId(0), .steps = {kSend01, kReceive10}},
                        {.rank = RankId(1), .steps = {kReceive01, kSend10}}},
                       1_MiB) == "none");
}

TEST_CASE("an executor wakes who asked when it ends, and can run again") {
  const StoredSchedule schedule = two_ranks({{.rank = RankId(0), .steps = {kSend01, kReceive10}},
                                             {.rank = RankId(1), .steps = {kReceive01, kSend10}}});
  const TestFabric fabric = idle_switch(2);
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = RoutingPolicy::Static});
  const auto network = make_network(Fidelity::Flow, simulator, routing);
  Executor executor(simulator, *network, schedule, fabric.hosts, 90'090_B);
  Recorder recorder(simulator);
  executor.notify(recorder, 7);
  const SimTime once = (1_us + kIdleLatency) * 2;
  for (int run = 1; run <= 3; ++run) {
    executor.start();
    simulator.run();
    REQUIRE(recorder.events().back() == Woken{.time = once * run, .token = 7});
    REQUIRE(recorder.events().size() == static_cast<std::size_t>(run));
    REQUIRE_FALSE(executor.contract_violation());
  }
}

// A wait until `steps` steps of a lane are done.
Step wait_for(std::uint32_t lane, std::uint32_t steps) {
  return {.kind = StepKind::Wait, .connection = lane, .chunks = {.first = steps, .count = 0}};
}

TEST_CASE("a lane waits for another one of its rank, whichever is first") {
  // Rank 0 answers in another lane than the one that receives.
  const auto answer = [](bool first) {
    const std::uint32_t receiver = first ? 1 : 0;
    std::vector<StoredSchedule::Lane> lanes{
        {.rank = RankId(0), .steps = {kReceive10}},
        {.rank = RankId(0), .steps = {wait_for(receiver, 1), kSend01}},
        {.rank = RankId(1), .steps = {kSend10, kReceive01}}};
    if (first) {
      std::swap(lanes[0], lanes[1]);
    }
    return run_schedule(idle_switch(2), two_ranks(std::move(lanes)), 90'090_B, Fidelity::Flow);
  };
  for (const bool first : {false, true}) {
    REQUIRE(answer(first).violation.value_or("none") == "none");
    REQUIRE(answer(first).finish == (1_us + kIdleLatency) * 2);
  }
}

TEST_CASE("lanes that wait for one another, or for more than there is, are reported") {
  REQUIRE(violation_of({{.rank = RankId(0), .steps = {wait_for(1, 1)}},
                        {.rank = RankId(0), .steps = {wait_for(0, 1)}}},
                       1_MiB) ==
          "rank 0 (lane 0, step 0) still waits for lane 1; 0 of 2 lanes "
          "ended");
}

TEST_CASE("copies and sums within a rank take no time") {
  const Step copy{.kind = StepKind::Copy, .connection = 0, .chunks = kWhole};
  const Step add{.kind = StepKind::Add, .connection = 0, .chunks = kWhole};
  const StoredSchedule schedule =
      two_ranks({{.rank = RankId(0), .steps = {copy, kSend01, kReceive10, add}},
                 {.rank = RankId(1), .steps = {kReceive01, add, kSend10, copy}}});
  const CollectiveRun run = run_schedule(idle_switch(2), schedule, 90'090_B, Fidelity::Flow);
  REQUIRE(run.violation.value_or("none") == "none");
  REQUIRE(run.finish == (1_us + kIdleLatency) * 2);
}

TEST_CASE("a deadlock ends and names who waits for whom") {
  REQUIRE(violation_of({{.rank = RankId(0), .steps = {kReceive10, kSend01}},
                        {.rank = RankId(1), .steps = {kReceive01, kSend10}}},
                       1_MiB) ==
          "rank 0 (lane 0, step 0) still waits for rank 1; 0 of 2 lanes ended");
  REQUIRE(violation_of({{.rank = RankId(0), .steps = {kSend01}},
                        {.rank = RankId(1), .steps = {kReceive01, kReceive01, kSend10}}},
                       1_MiB) ==
          "rank 1 (lane 1, step 1) still waits for rank 0; 1 of 2 lanes ended");
}

TEST_CASE("a whole ring that waits first ends and is reported") {
  CopiedSchedule ring(*make_flat({.algorithm = &kRing, .ranks = 5}));
  for (StoredSchedule::Lane& lane : ring.lanes()) {
    std::swap(lane.steps[0], lane.steps[1]);
  }
  const CollectiveRun run = run_schedule(idle_switch(5), ring, 1_MiB, Fidelity::Flow);
  REQUIRE(run.violation == "rank 0 (lane 0, step 0) still waits for rank 4; 0 of 5 lanes ended");
  REQUIRE(run.stats.messages == 0);
}

// Rank 0 sends 90,090 bytes to ranks 1 and 2, which receive or not: 1 us alone on its link, a path
// 3 us.
CollectiveRun two_sends(bool rendezvous, bool first_receives) {
  ScheduleShape shape;
  shape.algorithm = "hand-made";
  shape.ranks = 3;
  shape.rendezvous = rendezvous;
  shape.chunk_count = 1;
  shape.lanes = 3;
  shape.connections = 2;
  const Step send02{.kind = StepKind::Send, .connection = 1, .chunks = kWhole};
  const Step receive02{.kind = StepKind::Receive, .connection = 1, .chunks = kWhole};
  std::vector<StoredSchedule::Lane> lanes{{.rank = RankId(0), .steps = {kSend01, send02}},
                                          {.rank = RankId(1), .steps = {}},
                                          {.rank = RankId(2), .steps = {receive02}}};
  if (first_receives) {
    lanes[1].steps.push_back(kReceive01);
  }
  const StoredSchedule schedule(
      shape, lanes,
      {{.source = RankId(0), .target = RankId(1)}, {.source = RankId(0), .target = RankId(2)}});
  return run_schedule(idle_switch(3), schedule, 90'090_B, Fidelity::Flow);
}

TEST_CASE("with rendezvous a lane sends one message after the other") {
  REQUIRE(two_sends(false, true).finish == 2_us + 3_us);
  REQUIRE(two_sends(true, true).finish == (1_us + 3_us) * 2);
}

TEST_CASE("a lane that cannot send is reported") {
  REQUIRE(two_sends(true, false).violation ==
          "rank 0 (lane 0, step 1) still waits for rank 2; 1 of 3 lanes ended");
}

TEST_CASE("messages that nobody receives break the contract") {
  REQUIRE(violation_of({{.rank = RankId(0), .steps = {kSend01, kSend01}},
                        {.rank = RankId(1), .steps = {kReceive01}}},
                       1000_B) == "2 messages of 2000 bytes were sent, 1 of 1000 bytes received");
  REQUIRE(violation_of({{.rank = RankId(0), .steps = {kSend01, kSend01}},
                        {.rank = RankId(1), .steps = {kReceive01}}},
                       0_B) == "2 messages of 0 bytes were sent, 1 of 0 bytes received");
}

TEST_CASE("sent and received sizes that differ break the contract") {
  CopiedSchedule ring(*make_flat({.algorithm = &kRing, .ranks = 3}));
  ring.lanes()[0].steps[0].chunks = {.first = 0, .count = 2};
  const CollectiveRun run = run_schedule(idle_switch(3), ring, 3000_B, Fidelity::Flow);
  REQUIRE(run.violation == "12 messages of 13000 bytes were sent, 12 of 12000 bytes received");
}

TEST_CASE("every collective receives all messages, of all bytes, for odd sizes too") {
  const TestFabric fabric = idle_switch(7);
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      for (const Bytes size : {0_B, 1_B, 6_B, 12'345'677_B}) {
        INFO(to_string(algorithm) << " " << to_string(operation) << " " << size.count());
        const auto schedule = make_flat({.algorithm = algorithm,
                                         .operation = operation,
                                         .ranks = 7,
                                         .channels = 2,
                                         .pieces = 3});
        for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
          REQUIRE_FALSE(run_schedule(fabric, *schedule, size, fidelity).violation.has_value());
        }
      }
    }
  }
}

// Both ranks of a switch, started 10 us late: what the executor says and what it records.
struct TracedRun {
  TraceRecorder trace;
  SimTime finish;
  std::uint64_t received = 0;
};

void run_late(const Schedule& schedule, Bytes size, TracedRun& run) {
  const TestFabric fabric = idle_switch(2);
  Simulator simulator;
  Recorder clock(simulator);
  simulator.schedule(10_us, clock, 0);
  simulator.run();
  Routing routing(fabric.topology, {});
  const auto network = make_network(Fidelity::Flow, simulator, routing);
  Executor executor(simulator, *network, schedule, fabric.hosts, size, &run.trace);
  executor.start();
  REQUIRE_FALSE(executor.finished());
  simulator.run();
  REQUIRE(executor.finished());
  run.finish = executor.finish_time();
  run.received = executor.messages_received();
}

TEST_CASE("the trace has a track for each lane and a span for each wait") {
  // 90,090 bytes take 1 us, and a path 3 us.
  const StoredSchedule schedule = two_ranks({{.rank = RankId(0), .steps = {kSend01, kReceive10}},
                                             {.rank = RankId(1), .steps = {kReceive01, kSend10}}});
  TracedRun run;
  run_late(schedule, 90'090_B, run);
  REQUIRE(run.finish == 18_us);
  REQUIRE(run.received == 2);
  const auto tracks = run.trace.tracks();
  REQUIRE(tracks.size() == 2);
  REQUIRE(tracks[0].group == "rank 0");
  REQUIRE(tracks[0].name == "lane 0");
  REQUIRE(tracks[1].group == "rank 1");
  const auto spans = run.trace.spans();
  REQUIRE(spans.size() == 2);
  REQUIRE(spans[0].track == TraceTrackId(1));
  REQUIRE(run.trace.name(spans[0].name) == "receive from rank 0, 90090 B");
  REQUIRE(spans[0].start == 10_us);
  REQUIRE(spans[0].end == 14_us);
  REQUIRE(spans[1].track == TraceTrackId(0));
  REQUIRE(run.trace.name(spans[1].name) == "receive from rank 1, 90090 B");
  REQUIRE(spans[1].start == 10_us);
  REQUIRE(spans[1].end == 18_us);
}

TEST_CASE("tracing changes no result, and a ring's spans are its receives") {
  const auto ring = make_flat({.algorithm = &kRing, .ranks = 2});
  TracedRun run;
  run_late(*ring, 180'180_B, run);
  REQUIRE(run.finish == 10_us + idle_time({.ranks = 2}, 180'180_B, Fidelity::Flow));
  REQUIRE(run.trace.spans().size() == 4);
  REQUIRE(run.trace.name(run.trace.spans()[0].name) == "reduce from rank 0, 90090 B");
}

TEST_CASE("a collective of one rank ends where it starts") {
  const TestFabric fabric = idle_switch(1);
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      INFO(to_string(algorithm) << " " << to_string(operation));
      REQUIRE(idle_time({.algorithm = algorithm, .operation = operation, .ranks = 1}, 1_MiB,
                        Fidelity::Flow) == SimTime());
    }
  }
}

}  // namespace
}  // namespace trainyard
