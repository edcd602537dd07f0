// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/config_error.h"
#include "support/catch.h"
#include "support/pipeline_forms.h"

namespace trainyard {
namespace {

std::vector<PipelineShape> many_shapes() {
  std::vector<PipelineShape> shapes;
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    for (const int chunks : {1, 2, 3}) {
      for (int ranks = 1; ranks <= 9; ++ranks) {
        for (int micro_batches = 1; micro_batches <= 24; ++micro_batches) {
          const PipelineShape shape{.schedule = schedule,
                                    .ranks = ranks,
                                    .micro_batches = micro_batches,
                                    .chunks = chunks};
          try {
            check(shape);
          } catch (const ConfigError&) {
            continue;
          }
          shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

// The most activations of a rank, in forwards of one micro-batch through its chunks.
double max_alive(const PipelineSchedule* schedule, int ranks, int chunks, int micro_batches,
                 int rank) {
  const PipelineShape shape{
      .schedule = schedule, .ranks = ranks, .micro_batches = micro_batches, .chunks = chunks};
  return static_cast<double>(max_activations(shape, rank)) / chunks;
}

}  // namespace

TEST_CASE("every rank runs every pass of its chunks once", "[pipeline]") {
  for (const PipelineShape& shape : many_shapes()) {
    INFO(to_string(shape.schedule) << " p " << shape.ranks << " m " << shape.micro_batches);
    const int each = shape.micro_batches / shape.directions();
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
    std::vector<int> seen(static_cast<std::size_t>(shape.stages()));
    for (int rank = 0; rank < shape.ranks; ++rank) {
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        const int stage = shape.stage_of(rank, chunk);
        ++seen.at(static_cast<std::size_t>(stage));
        REQUIRE(shape.rank_of(stage, {.chunk = chunk}) == rank);
      }
    }
    REQUIRE(seen == std::vector<int>(seen.size(), shape.directions()));
  }
}

TEST_CASE("only a ring hands over from the last rank to the first", "[pipeline]") {
  for (const PipelineShape& shape : many_shapes()) {
    if (shape.ranks < 3) {
      continue;
    }
    bool hands_over = false;
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      const int next = shape.stage_of(shape.ranks - 1, chunk) + 1;
      hands_over =
          hands_over || (next < shape.stages() && shape.rank_of(next, {.chunk = chunk}) == 0);
    }
    REQUIRE(hands_over == (shape.schedule->layout.is_ring && shape.chunks > 1));
  }
}

TEST_CASE("a backward is split where the row says so", "[pipeline]") {
  for (const PipelineShape& shape : many_shapes()) {
    bool splits = false;
    for (const Pass& pass : passes_of(shape, 0)) {
      splits = splits || pass.kind == PassKind::InputGradient;
    }
    INFO(to_string(shape.schedule) << " p " << shape.ranks << " m " << shape.micro_batches);
    REQUIRE(splits == shape.schedule->splits_backward);
  }
}

TEST_CASE("the most activations are those of the closed forms", "[pipeline]") {
  for (const PipelineShape& shape : many_shapes()) {
    for (int rank = 0; closed_activations(shape, 0) && rank < shape.ranks; ++rank) {
      INFO(to_string(shape.schedule) << " p " << shape.ranks << " m " << shape.micro_batches
                                     << " chunks " << shape.chunks << " rank " << rank);
      REQUIRE(max_activations(shape, rank) == closed_activations(shape, rank));
    }
  }
}

TEST_CASE("the schedule says how many micro-batches are alive", "[pipeline]") {
  const int p = 8;
  const int m = 32;
  for (int rank = 0; rank < p; ++rank) {
    INFO("rank " << rank);
    REQUIRE(max_alive(&kZeroBubbleV, p, 2, m, rank) <= p);           // arXiv 2401.10241.
    REQUIRE(max_alive(&kDualPipe, p, 2, m, rank) <= 0.5 * (p + 1));  // arXiv 2412.19437, table 2.
  }
  // p (1 + (p - 1) / (p v)): arXiv 2205.05198, section 4.2.3.
  for (const int v : {2, 3, 4}) {
    REQUIRE(max_alive(&kInterleaved, p, v, m, 0) == Approx(p * (1.0 + (p - 1.0) / (p * v))));
  }
}

TEST_CASE("each row has a name of its own, the usual schedule first", "[pipeline]") {
  const std::vector<std::string_view> names = pipeline_schedule_names();
  REQUIRE(names.front() == "1f1b");
  REQUIRE(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("a pipeline that a schedule cannot run names its numbers", "[pipeline]") {
  const auto require_refused = [](const PipelineShape& shape, const std::string& message) {
    REQUIRE_THROWS_MATCHES(check(shape), ConfigError, Catch::Matchers::Message(message));
  };
  require_refused(
      {.schedule = &kInterleaved, .ranks = 4, .micro_batches = 6, .chunks = 2},
      "schedule interleaved: expected micro-batches that 4 pipeline ranks divide, found 6");
  require_refused(
      {.schedule = &kDualPipe, .ranks = 3, .micro_batches = 8, .chunks = 2},
      "schedule dualpipe: expected an even number of pipeline ranks and of micro-batches, "
      "at least two a rank, found 3 and 8");
  require_refused(
      {.schedule = &kDualPipe, .ranks = 4, .micro_batches = 6, .chunks = 2},
      "schedule dualpipe: expected an even number of pipeline ranks and of micro-batches, "
      "at least two a rank, found 4 and 6");
  require_refused({.schedule = &kZeroBubbleV, .ranks = 4, .micro_batches = 8, .chunks = 1},
                  "schedule zb-v: expected two chunks a rank, found 1");
  require_refused({.schedule = &kGPipe, .ranks = 4, .micro_batches = 8, .chunks = 2},
                  "schedule gpipe: expected one chunk a rank, found 2");
}

}  // namespace trainyard
