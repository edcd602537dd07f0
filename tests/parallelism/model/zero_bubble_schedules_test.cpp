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

}  // namespace trainyard
