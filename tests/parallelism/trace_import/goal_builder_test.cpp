// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/goal_builder.h"

#include <vector>

#include "support/imported_workloads.h"

namespace trainyard {

using namespace literals;

TEST_CASE("each rank has streams of its own, and a start is a moment before an operation",
          "[goal]") {
  GoalBuilder builder(2);
  const GraphName name{.text = builder.add_name("calc")};
  builder.open_rank(0);
  const OperationId first = builder.add_calc(0, name, 3_us);
  const OperationId second = builder.add_calc(7, name, 1_us);
  // Both wait for the same start, which so is one operation; the last one waits for the end too.
  const OperationId third = builder.add_calc(8, name, 1_us);
  const OperationId last = builder.add_calc(9, name, 1_us);
  builder.close_rank(
      std::vector<GoalBuilder::Requirement>{{.after = first, .before = second, .at_start = false},
                                            {.after = third, .before = first, .at_start = true},
                                            {.after = last, .before = first, .at_start = true},
                                            {.after = last, .before = third, .at_start = false}});
  builder.open_rank(1);
  const OperationId other = builder.add_calc(0, name, 2_us);
  builder.close_rank({});
  const ImportedWorkload workload = std::move(builder).finish();
  REQUIRE(workload.graph.streams().size() == 6);  // Those of five computations, and one of starts.
  REQUIRE(workload.graph.operations().size() == 6);
  REQUIRE(workload.left_out.empty());
  const GraphedRun run = run_round(workload);
  REQUIRE(run.result.timings[first.value()].start == 1_us);
  REQUIRE(run.result.timings[third.value()].start == 1_us);
  REQUIRE(run.result.timings[last.value()].start == 2_us);
  REQUIRE(run.result.timings[other.value()].end == 2_us);
  REQUIRE(run.result.finish == 4_us);
}

}  // namespace trainyard
