// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/imported_run.h"

#include <cstdint>
#include <string>
#include <utility>

#include "support/imported_workloads.h"

namespace trainyard {
namespace {

using namespace literals;

// Both ranks compute, add up 2000 bytes, and compute again.
ImportedWorkload sum_of_two(OperationGraph graph) {
  const CommunicatorId both = graph.add_communicator("both", {0, 1});
  for (const int rank : graph.present()) {
    const StreamId stream = graph.add_stream(rank, "stream");
    graph.add_compute(stream, "before", StepPart::Linear, 1_us);
    graph.add_collective(
        stream, "sum", StepPart::Pipeline,
        {.communicator = both, .operation = Operation::AllReduce, .size = Bytes(2000)});
    graph.add_compute(stream, "after", StepPart::Linear, 1_us);
  }
  return {.graph = std::move(graph)};
}

}  // namespace

TEST_CASE("a call takes the same alone and on an idle network", "[imported_run]") {
  const ImportedWorkload workload = sum_of_two(OperationGraph(2));
  // A ring of two: two rounds of 1000 bytes each, 2 us a round.
  REQUIRE(run_round(workload).result.finish == 6_us);
  REQUIRE(run_round(workload, {}, false).result.finish == 6_us);
  const GraphedRun run = run_round(workload, {}, false);
  REQUIRE(run.calls == 1);
  for (const StepParts& parts : run.ranks) {
    REQUIRE(parts[StepPart::Linear] == 2_us);
    REQUIRE(parts[StepPart::Pipeline] == 4_us);
  }
}

TEST_CASE("one rank represents those that are not in the file, but not on a shared network",
          "[imported_run]") {
  const ImportedWorkload workload = sum_of_two(OperationGraph(2, {1}));
  REQUIRE(run_round(workload, {}, false).result.finish == 6_us);
  std::string error;
  try {
    (void)run_round(workload);
  } catch (const ConfigError& problem) {
    error = problem.what();
  }
  REQUIRE(error ==
          "--traffic shared: expected all 2 ranks in the workload, found 1: traffic of the others "
          "is not known");
}

TEST_CASE("work that is too long to be counted is refused", "[imported_run]") {
  OperationGraph graph(1);
  const StreamId stream = graph.add_stream(0, "stream");
  for (int index = 0; index < 14; ++index) {
    graph.add_compute(stream, "long", StepPart::Linear, seconds(32'400));
  }
  const ImportedWorkload workload{.graph = std::move(graph)};
  const auto error_of = [&](std::int64_t ppm) {
    try {
      (void)run_round(workload, {.compute_ppm = {ppm}});
    } catch (const ConfigError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  REQUIRE(run_round(workload).result.finish == seconds(14 * 32'400));
  REQUIRE(error_of(1'000'000) == "no error");
  REQUIRE(error_of(1'000'000'000) ==
          "goal: expected operations of at most 9 hours each and 50 days in all, as they are "
          "scaled, found 32400000 s and 453600000 s");
}

}  // namespace trainyard
