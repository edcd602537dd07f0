// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include "support/catch.h"

namespace trainyard {

TEST_CASE("the last rank of a V continues with its own second chunk", "[pipeline]") {
  const PipelineShape shape{.schedule = &kZeroBubbleV, .ranks = 4, .micro_batches = 8, .chunks = 2};
  const std::vector<Pass> passes = passes_of(shape, 3);
  REQUIRE(shape.stage_of(3, 1) == shape.stage_of(3, 0) + 1);
  REQUIRE(passes[0] == Pass{});
  REQUIRE(passes[1] == Pass{.chunk = 1});
}

}  // namespace trainyard
