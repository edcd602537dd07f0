// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include "support/catch.h"
#include "support/pipeline_forms.h"

namespace trainyard {

TEST_CASE("interleaved ranks warm up with twice the forwards of 1F1B", "[pipeline]") {
  for (const int ranks : {1, 2, 4, 7}) {
    const PipelineShape shape{.ranks = ranks, .micro_batches = 3 * ranks};
    PipelineShape interleaved = shape;
    interleaved.schedule = &kInterleaved;
    for (int rank = 0; rank < ranks; ++rank) {
      const int warm_up = ranks - 1 - rank;
      REQUIRE(passes_of(shape, rank).size() == passes_of(interleaved, rank).size());
      REQUIRE(*closed_activations(interleaved, rank) == *closed_activations(shape, rank) + warm_up);
    }
  }
}

TEST_CASE("GPipe runs its backwards from the last to the first", "[pipeline]") {
  const std::vector<Pass> passes = passes_of({.schedule = &kGPipe, .micro_batches = 2}, 0);
  REQUIRE(passes[2] == Pass{.kind = PassKind::Backward, .micro_batch = 1});
  REQUIRE(passes[3] == Pass{.kind = PassKind::Backward, .micro_batch = 0});
}

}  // namespace trainyard
