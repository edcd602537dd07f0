// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include "support/catch.h"

namespace trainyard {

TEST_CASE("H2 warms up with twice the forwards of H1", "[pipeline]") {
  const auto warm_up = [](const PipelineSchedule& schedule, int rank) {
    int forwards = 0;
    for (const Pass& pass :
         passes_of({.schedule = &schedule, .ranks = 4, .micro_batches = 16}, rank)) {
      if (pass.kind != PassKind::Forward) {
        break;
      }
      ++forwards;
    }
    return forwards;
  };
  for (int rank = 0; rank < 4; ++rank) {
    REQUIRE(warm_up(kZeroBubbleH1, rank) == 4 - rank);
    REQUIRE(warm_up(kZeroBubbleH2, rank) == 2 * (3 - rank) + 1);
  }
}

TEST_CASE("the last rank of a V continues with its own second chunk", "[pipeline]") {
  const PipelineShape shape{.schedule = &kZeroBubbleV, .ranks = 4, .micro_batches = 8, .chunks = 2};
  const std::vector<Pass> passes = passes_of(shape, 3);
  REQUIRE(shape.stage_of(3, 1) == shape.stage_of(3, 0) + 1);
  REQUIRE(passes[0] == Pass{});
  REQUIRE(passes[1] == Pass{.chunk = 1});
}

}  // namespace trainyard
