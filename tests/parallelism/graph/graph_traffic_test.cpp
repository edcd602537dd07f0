// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_traffic.h"

#include "support/step_times.h"

namespace trainyard {

TEST_CASE("equal calls and messages are asked for once", "[graph_traffic]") {
  SteadyGroupTimes times(1e6);
  TimedTraffic traffic(times);
  const GraphCommunicator four{.name = "four", .ranks = {0, 1, 2, 3}};
  const GraphCall call{.communicator = CommunicatorId(2), .size = Bytes(4), .times = 3};
  for (int round = 0; round < 5; ++round) {
    REQUIRE(traffic.call_time(four, call) == SimTime(18'000'000));
    REQUIRE(traffic.message_time(1, 2, Bytes(7)) == SimTime(7'000'000));
  }
  REQUIRE(times.collectives == 1);
  REQUIRE(times.transfers == 1);
}

}  // namespace trainyard
