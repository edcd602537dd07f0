// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/schedule/piecewise.h"

#include <vector>

namespace trainyard {
namespace {

TEST_CASE("a lane repeats its steps for each piece, on that piece's chunks") {
  PiecewiseBuilder builder({.operation = Operation::Broadcast,
                            .algorithm = "hand-made",
                            .ranks = 2,
                            .relays = 1,
                            .root = RankId(0)},
                           3, 5);
  const std::uint32_t up = builder.connect(RankId(0), RankId(2));
  const std::uint32_t down = builder.connect(RankId(2), RankId(1));
  const ChunkRange chunks{.first = 1, .count = 4};
  builder.add_lane(RankId(2), {{.kind = StepKind::Receive, .connection = up, .chunks = chunks},
                               {.kind = StepKind::Send, .connection = down, .chunks = chunks}});
  builder.add_lane(RankId(1), {});
  const auto schedule = std::move(builder).build();
  REQUIRE(schedule->shape().chunk_count == 15);
  REQUIRE(schedule->shape().lanes == 2);
  REQUIRE(schedule->shape().connections == 2);
  REQUIRE(schedule->shape().relays == 1);
  REQUIRE(schedule->connection(down).source == RankId(2));
  REQUIRE(schedule->connection(down).target == RankId(1));
  REQUIRE(schedule->lane_rank(LaneId(0)) == RankId(2));
  REQUIRE(schedule->step_count(LaneId(0)) == 6);
  REQUIRE(schedule->step_count(LaneId(1)) == 0);
  for (std::uint32_t index = 0; index < 6; ++index) {
    const Step step = schedule->step(LaneId(0), index);
    REQUIRE(step.kind == (index % 2 == 0 ? StepKind::Receive : StepKind::Send));
    REQUIRE(step.connection == (index % 2 == 0 ? up : down));
    REQUIRE(step.chunks == ChunkRange{.first = 1 + 5 * (index / 2), .count = 4});
  }
}

}  // namespace
}  // namespace trainyard
