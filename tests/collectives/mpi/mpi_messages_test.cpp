// SPDX-License-Identifier: Apache-2.0
// How many messages the algorithms send that are written out here. mpi_schedule_test.cpp proves
// them.
#include "support/catch.h"

#include "collectives/mpi/mpi_messages.h"

#include "collectives/mpi/mpi_schedule.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

std::uint64_t sends_of(const Schedule& schedule, std::uint32_t lane) {
  std::uint64_t sends = 0;
  for (std::uint64_t index = 0; index < schedule.step_count(LaneId(lane)); ++index) {
    sends += schedule.step(LaneId(lane), index).kind == StepKind::Send ? 1 : 0;
  }
  return sends;
}

}  // namespace

TEST_CASE("Rabenseifner's takes 2 log2 N messages of each rank, the butterfly one more",
          "[collectives][mpi]") {
  const MpiRules rules = shipped_mpi_rules();
  MpiCall call{.operation = Operation::AllReduce, .ranks = 16, .size = mib(1)};
  REQUIRE(sends_of(*mpi_schedule("rabenseifner", call, rules), 5) == 8);
  call.operation = Operation::ReduceScatter;
  REQUIRE(sends_of(*mpi_schedule("butterfly", call, rules), 1) == 5);
  REQUIRE(sends_of(*mpi_schedule("butterfly", call, rules), 6) == 4);  // 0110 is its own mirror.
  call.operation = Operation::AllGather;
  REQUIRE(sends_of(*mpi_schedule("neighbor", call, rules), 3) == 8);
}

}  // namespace trainyard
