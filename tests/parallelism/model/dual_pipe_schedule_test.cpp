// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include "support/catch.h"

namespace trainyard {

TEST_CASE("each end of DualPipe begins with its own direction", "[pipeline]") {
  const PipelineShape shape{.schedule = &kDualPipe, .ranks = 4, .micro_batches = 8, .chunks = 2};
  REQUIRE(passes_of(shape, 0).front() == Pass{.chunk = 0});
  REQUIRE(passes_of(shape, 3).front() == Pass{.chunk = 1});
  REQUIRE(shape.stage_of(0, 1) == 3);
  REQUIRE(shape.stages() == 4);
}

}  // namespace trainyard
