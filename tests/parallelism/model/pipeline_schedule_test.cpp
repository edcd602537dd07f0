// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include <map>
#include <utility>

#include "sim/config_error.h"
#include "support/catch.h"

namespace trainyard {
namespace {

std::vector<PipelineShape> many_shapes() {
  std::vector<PipelineShape> shapes;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (int micro_batches = 1; micro_batches <= 24; ++micro_batches) {
      for (const auto& [schedule, chunks] : {std::pair(PipelineSchedule::GPipe, 1),
                                             std::pair(PipelineSchedule::OneForwardOneBackward, 1),
                                             std::pair(PipelineSchedule::Interleaved, 2),
                                             std::pair(PipelineSchedule::Interleaved, 3),
                                             std::pair(PipelineSchedule::ZeroBubbleH1, 1),
                                             std::pair(PipelineSchedule::ZeroBubbleH2, 1),
                                             std::pair(PipelineSchedule::ZeroBubbleV, 2),
                                             std::pair(PipelineSchedule::DualPipe, 2)}) {
        const PipelineShape shape{
            .schedule = schedule, .ranks = ranks, .micro_batches = micro_batches, .chunks = chunks};
        try {
          check(shape);
        } catch (const ConfigError&) {
          continue;
        }
        shapes.push_back(shape);
      }
    }
  }
  return shapes;
}

}  // namespace

TEST_CASE("every rank runs every pass of its chunks once", "[pipeline]") {
  for (const PipelineShape& shape : many_shapes()) {
    INFO(to_string(shape.schedule) << " p " << shape.ranks << " m " << shape.micro_batches);
    const int each = shape.schedule == PipelineSchedule::DualPipe ? shape.micro_batches / 2
                                                                  : shape.micro_batches;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      std::map<std::pair<int, int>, std::array<int, 4>> counts;
      for (const Pass& pass : passes_of(shape, rank)) {
        REQUIRE((pass.micro_batch >= 0 && pass.micro_batch < each));
        ++counts[{pass.chunk, pass.micro_batch}].at(static_cast<std::size_t>(pass.kind));
      }
      REQUIRE(counts.size() == static_cast<std::size_t>(each * shape.chunks));
      for (const auto& [key, count] : counts) {
        REQUIRE(count[0] == 1);
        REQUIRE(count[1] + count[2] == 1);
        REQUIRE(count[2] == count[3]);
      }
    }
  }
}

TEST_CASE("the chunks of the ranks are the stages of the model", "[pipeline]") {
  for (const PipelineShape& shape : many_shapes()) {
    if (shape.schedule == PipelineSchedule::DualPipe) {
      REQUIRE(shape.stage_of(0, 0) == 0);
      REQUIRE(shape.stage_of(0, 1) == shape.ranks - 1);
      continue;
    }
    std::vector<int> seen(static_cast<std::size_t>(shape.stages()));
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        ++seen.at(static_cast<std::size_t>(shape.stage_of(rank, chunk)));
      }
    }
    REQUIRE(seen == std::vector<int>(seen.size(), 1));
  }
}

TEST_CASE("a pipeline that a schedule cannot run names its numbers", "[pipeline]") {
  const auto require_refused = [](const PipelineShape& shape, const std::string& message) {
    REQUIRE_THROWS_MATCHES(check(shape), ConfigError, Catch::Matchers::Message(message));
  };
  require_refused(
      {.schedule = PipelineSchedule::Interleaved, .ranks = 4, .micro_batches = 6, .chunks = 2},
      "schedule interleaved: expected micro-batches that 4 pipeline ranks divide, found 6");
  require_refused(
      {.schedule = PipelineSchedule::DualPipe, .ranks = 3, .micro_batches = 8, .chunks = 2},
      "schedule dualpipe: expected an even number of pipeline ranks and of micro-batches, "
      "at least two a rank, found 3 and 8");
  require_refused(
      {.schedule = PipelineSchedule::DualPipe, .ranks = 4, .micro_batches = 6, .chunks = 2},
      "schedule dualpipe: expected an even number of pipeline ranks and of micro-batches, "
      "at least two a rank, found 4 and 6");
  require_refused(
      {.schedule = PipelineSchedule::ZeroBubbleV, .ranks = 4, .micro_batches = 8, .chunks = 1},
      "schedule zb-v: expected two chunks a rank, found 1");
  require_refused(
      {.schedule = PipelineSchedule::GPipe, .ranks = 4, .micro_batches = 8, .chunks = 2},
      "schedule gpipe: expected one chunk a rank, found 2");
}

}  // namespace trainyard
