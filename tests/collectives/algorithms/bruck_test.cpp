// SPDX-License-Identifier: Apache-2.0
// Closed forms of Bruck's algorithms on an idle switch, to the picosecond, for any number of ranks:
// every round, each rank sends one message and receives one.
#include "support/catch.h"

#include <algorithm>

#include "support/collective_run.h"

namespace trainyard {
namespace {

SimTime message_time(std::int64_t size) {
  return transfer_time(Bytes(size), kIdleBandwidth) + kIdleLatency;
}

TEST_CASE("bruck takes the sum of its rounds, any number of ranks") {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 11, 16, 21}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      SimTime gather;
      SimTime exchange;
      for (int bit = 1; bit < ranks; bit *= 2) {
        gather += message_time(block * std::min(bit, ranks - bit));
        std::int64_t blocks = 0;
        for (int offset = 0; offset < ranks; ++offset) {
          blocks += (offset & bit) != 0 ? 1 : 0;
        }
        exchange += message_time(block * blocks);
      }
      for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
        INFO(ranks << " ranks, blocks of " << block << ", " << to_string(fidelity));
        const auto time = [&](Operation operation) {
          return idle_time({.algorithm = &kBruck, .operation = operation, .ranks = ranks},
                           Bytes(block * ranks), fidelity);
        };
        REQUIRE(time(Operation::AllGather) == gather);
        REQUIRE(time(Operation::AllToAll) == exchange);
      }
    }
  }
}

TEST_CASE("bruck sends one message a round") {
  const auto schedule =
      make_flat({.algorithm = &kBruck, .operation = Operation::AllToAll, .ranks = 6});
  REQUIRE(schedule->step_count(LaneId(5)) == 6);
  // Rank 5 in round 1: offsets 2 and 3, of which 3 came from rank 4 in round 0.
  const Step step = schedule->step(LaneId(5), 2);
  REQUIRE(step.kind == StepKind::Send);
  REQUIRE(schedule->connection(step.connection).target == RankId(1));
  REQUIRE(step.chunks.count == 2);
  REQUIRE(schedule->chunk_at(step.chunks.first) == 5 * 6 + 1);
  REQUIRE(schedule->chunk_at(step.chunks.first + 1) == 4 * 6 + 1);
}

}  // namespace
}  // namespace trainyard
