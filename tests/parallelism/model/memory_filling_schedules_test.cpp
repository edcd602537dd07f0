// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "parallelism/closed_forms/pipeline_timeline.h"
#include "support/catch.h"

namespace trainyard {
namespace {

// Ends of `end` bytes and stages of 60 between them, of which a share waits for the weights.
PipelineShape filled_shape(const PipelineSchedule& schedule, int ranks, int micro_batches, int end,
                           double share) {
  PipelineShape shape{.schedule = &schedule, .ranks = ranks, .micro_batches = micro_batches};
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t size = rank == 0 || rank + 1 == ranks ? end : 60;
    const Bytes weight(std::llround(static_cast<double>(size) * share));
    shape.stage_memory.push_back({.forward = Bytes(size), .weight = weight});
  }
  return shape;
}

// "FFBWBW": the passes of a rank.
std::string letters(const PipelineShape& shape, int rank) {
  std::string text;
  for (const Pass& pass : passes_of(shape, rank)) {
    text += pass.kind == PassKind::Forward ? 'F' : pass.kind == PassKind::InputGradient ? 'B' : 'W';
  }
  return text;
}

std::int64_t most_held(const PipelineShape& shape, int rank) {
  const StageMemory& memory = shape.stage_memory[static_cast<std::size_t>(rank)];
  Bytes held;
  Bytes most;
  for (const Pass& pass : passes_of(shape, rank)) {
    held += pass.kind == PassKind::Forward         ? memory.forward
            : pass.kind == PassKind::InputGradient ? memory.weight - memory.forward
                                                   : Bytes() - memory.weight;
    most = std::max(most, held);
  }
  return most.count();
}

// The longest time from the first pass of a rank to its last, in passes that all last the same.
double longest(const PipelineShape& shape) {
  const SimTime pass = microseconds(1);
  PipelineTimes times;
  times.stages.assign(static_cast<std::size_t>(shape.ranks), {pass, pass, pass});
  SimTime most;
  for (const auto& rank : run_pipeline(shape, times).ranks) {
    most = std::max(most, rank.back().end - rank.front().start);
  }
  return most / pass;
}

}  // namespace

// Orders that sail-sg/zero-bubble (scheduler/zb.py, as of 39f2c18) gives for the same sizes, passes
// of 1000 and a transfer of 1.
TEST_CASE("memory is filled in the order of the authors' search", "[pipeline]") {
  const auto require_orders = [](const PipelineShape& shape,
                                 const std::vector<std::string>& orders) {
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      REQUIRE(letters(shape, static_cast<int>(rank)) == orders[rank]);
    }
  };
  require_orders(filled_shape(kZeroBubble1p, 4, 8, 60, 1.0),
                 {"FFFFBWFBWFBWFBWFBWBWBWBW", "FFFBFBWFBWFBWFBWFBWBWBWW",
                  "FFBFBFBWFBWFBWFBWFBWBWWW", "FBFBFBFBWFBWFBWFBWFBWWWW"});
  require_orders(filled_shape(kZeroBubble1p, 4, 8, 40, 0.4),
                 {"FFFFFFBWFBWFBWBWBWBWBWBW", "FFFFBWFBWFBBFBWFBWBWBWWW",
                  "FFFBFBWFBBFBWFBWFBWBWWWW", "FBFBFBFBFBFBWFBWFBWWWWWW"});
  require_orders(filled_shape(kZeroBubble2p, 4, 12, 40, 0.4),
                 {"FFFFFFFFFFBFBFWWBWBWBWBWBWBWBWBWBWBW", "FFFFFFFBFBFBWFBBFBFBWBWBWBWBWBWWWWWW",
                  "FFFFBFBFBFBFBFBFBFBFBWBWBWBWWWWWWWWW", "FBFBFBFBFBFBFBFBFBFBFBFBWWWWWWWWWWWW"});
  require_orders(filled_shape(kZeroBubble2p, 3, 7, 60, 0.5),
                 {"FFFFFFBWBFWBWBWBWBWBW", "FFFFBBFBFBFBWBWBWWWWW", "FBFBFBFBFBFBFBWWWWWWW"});
}

// arXiv 2401.10241, section 4.2: the limits of memory of ZB-1p and ZB-2p.
TEST_CASE("filled memory stays within p and 2 p micro-batches of the second stage", "[pipeline]") {
  for (int ranks = 2; ranks <= 9; ++ranks) {
    for (const int micro_batches : {1, 3, 8, 40}) {
      for (const int end : {30, 40, 60}) {
        for (const double share : {0.35, 0.5, 0.95, 1.0}) {
          const std::int64_t stage = ranks == 2 ? end : 60;
          for (int rank = 0; rank < ranks; ++rank) {
            INFO(ranks << " ranks, " << micro_batches << " micro-batches, " << end << ", " << share
                       << ", rank " << rank);
            const auto once = filled_shape(kZeroBubble1p, ranks, micro_batches, end, share);
            const auto twice = filled_shape(kZeroBubble2p, ranks, micro_batches, end, share);
            REQUIRE(most_held(once, rank) <= ranks * stage);
            REQUIRE(most_held(twice, rank) <= 2 * ranks * stage);
          }
        }
      }
    }
  }
}

// The same, table 2 and figure 3: with equal passes p - 1 of them are idle in H1 and none in H2.
TEST_CASE("twice the memory leaves no idle time, once leaves no more than H1", "[pipeline]") {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    const int micro_batches = 4 * ranks;
    INFO(ranks << " ranks");
    const double once = longest(filled_shape(kZeroBubble1p, ranks, micro_batches, 60, 0.5));
    const double twice = longest(filled_shape(kZeroBubble2p, ranks, micro_batches, 60, 0.5));
    REQUIRE(once <= 3.0 * micro_batches + ranks - 1);
    REQUIRE(twice == Approx(3.0 * micro_batches));
  }
}

}  // namespace trainyard
