// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_run.h"

#include "support/step_times.h"

namespace trainyard {
namespace {

using namespace literals;

OperationGraph two_steps_of_work() {
  OperationGraph graph(1);
  const StreamId stream = graph.add_stream(0, "compute");
  graph.add_compute(stream, "first", StepPart::Linear, 3_us);
  graph.add_compute(stream, "second", StepPart::Linear, 2_us);
  return graph;
}

struct Witness final : private EventHandler {
  explicit Witness(Simulator& used) : EventHandler(used), simulator(used) {}
  void watch(GraphRun& run) { run.notify(*this, 1); }
  void on_event(std::uint64_t) override { woken = simulator.now(); }

  Simulator& simulator;
  SimTime woken;
};

}  // namespace

TEST_CASE("runs of one simulator count from their own start and say when they end", "[graph_run]") {
  const OperationGraph graph = two_steps_of_work();
  SteadyGroupTimes times;
  TimedTraffic traffic(times);
  Simulator simulator;
  const GraphRunOptions options;
  GraphRun first(simulator, graph, traffic, options);
  Witness witness(simulator);
  witness.watch(first);
  first.start();
  REQUIRE_FALSE(first.has_ended());
  simulator.run();
  REQUIRE(first.has_ended());
  REQUIRE(witness.woken == 5_us);
  GraphRun second(simulator, graph, traffic, options);
  second.start();
  simulator.run();
  REQUIRE(simulator.now() == 10_us);
  REQUIRE(second.result().finish == 5_us);
  REQUIRE(first.result().finish == 5_us);
}

}  // namespace trainyard
