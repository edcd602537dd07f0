// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/hccl/written_schedule.h"

#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/semantics.h"

namespace trainyard {

TEST_CASE("what is written message by message is a schedule", "[collectives][hccl]") {
  // Chunks 0 and 2 travel in one message though chunk 1 lies between them.
  ScheduleWriter writer(2);
  writer.send(0, 1, {0, 2});
  writer.send(1, 0, {1, 3});
  writer.take(StepKind::Receive, 0, 1, {0, 2});
  writer.take(StepKind::Receive, 1, 0, {1, 3});
  const auto schedule = writer.finish(Operation::AllGather, "by hand", 4);
  REQUIRE(schedule->shape().algorithm == "by hand");
  REQUIRE(schedule->shape().connections == 2);
  REQUIRE(schedule->step_count(LaneId(0)) == 2);
  REQUIRE(schedule->step(LaneId(0), 0).chunks.count == 2);
  REQUIRE_FALSE(find_violation(*schedule).has_value());
}

TEST_CASE("a schedule written into another works on blocks", "[collectives][hccl]") {
  // Two rings of two ranks side by side, 0 and 2, 1 and 3, each rank with blocks of two chunks:
  // ranks 0 and 2 then have all even chunks of all, so that the whole is no all_gather.
  const auto ring =
      make_schedule(&kRing, Operation::AllGather, {.layout = flat_layout(2, 1), .root = RankId(0)});
  const auto written = [&](bool both) {
    ScheduleWriter writer(4);
    writer.embed(*ring, {0, 1}, {{0}, {1}});
    writer.embed(*ring, {2, 3}, {{2}, {3}});
    if (both) {
      writer.embed(*ring, {0, 2}, {{0, 1}, {2, 3}});
      writer.embed(*ring, {1, 3}, {{0, 1}, {2, 3}});
    }
    return writer.finish(Operation::AllGather, "two levels", 4);
  };
  REQUIRE_FALSE(find_violation(*written(true)).has_value());
  REQUIRE(find_violation(*written(false)).has_value());
}

}  // namespace trainyard
