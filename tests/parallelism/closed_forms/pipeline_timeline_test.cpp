// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/pipeline_timeline.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "parallelism/model/pipeline_schedule.h"
#include "sim/config.h"
#include "support/catch.h"
#include "support/paths.h"
#include "support/pipeline_forms.h"

namespace trainyard {
namespace {

const std::filesystem::path kSchedules =
    source_dir() / "validation" / "pipeline" / "schedules.yaml";

const std::map<std::string, const PipelineSchedule*> kScheduleNames = {
    {"gpipe", &kGPipe},
    {"onef1b", &kOneForwardOneBackward},
    {"interleaved", &kInterleaved},
    {"zbh1", &kZeroBubbleH1},
    {"zbh2", &kZeroBubbleH2},
    {"zbv", &kZeroBubbleV},
    {"dualpipe", &kDualPipe}};

// The file counts in units that are 1 ns here.
SimTime units(std::int64_t count) {
  return SimTime(count * 1000);
}

int integer(const ConfigNode& node, std::string_view key) {
  return static_cast<int>(node.required(key).as_integer(0, 1 << 20));
}

std::vector<int> integers(const ConfigNode& node) {
  std::vector<int> values;
  for (const ConfigNode& item : node.items()) {
    values.push_back(static_cast<int>(item.as_integer(0, 1 << 20)));
  }
  return values;
}

PipelineShape shape_of(const ConfigNode& node) {
  const PipelineShape shape{.schedule = kScheduleNames.at(node.required("schedule").as_string()),
                            .ranks = integer(node, "p"),
                            .micro_batches = integer(node, "m"),
                            .chunks = integer(node, "chunks")};
  check(shape);
  return shape;
}

PipelineTimes equal_stages(const PipelineShape& shape, std::array<int, 4> times) {
  return {.stages = std::vector<StageTimes>(static_cast<std::size_t>(shape.stages()),
                                            {.forward = units(times[0]),
                                             .input_gradient = units(times[1]),
                                             .weight_gradient = units(times[2])}),
          .transfer_to_neighbour =
              std::vector<SimTime>(2 * static_cast<std::size_t>(shape.ranks), units(times[3]))};
}

PipelineTimes times_named(const PipelineShape& shape, const ConfigNode& times,
                          std::string_view name) {
  const ConfigNode node = times.required(name);
  return equal_stages(
      shape, {integer(node, "F"), integer(node, "B"), integer(node, "W"), integer(node, "comm")});
}

// As the file writes them.
std::string text_of(const PipelineShape& shape, const std::vector<TimedPass>& passes) {
  const bool is_split = shape.directions() == 2;
  std::string text;
  bool is_second = false;
  for (const auto& [pass, start, end] : passes) {
    std::string name = pass.kind == PassKind::Forward          ? "F"
                       : pass.kind == PassKind::WeightGradient ? "W"
                                                               : "B";
    name += pass.kind == PassKind::Backward && is_split && !is_second ? "W" : "";
    name += std::to_string(pass.micro_batch);
    name += shape.chunks > 1 ? fmt::format(".{}", pass.chunk) : "";
    text += text.empty() || is_second ? "" : " ";
    text += pass.with_next ? name + "+" : fmt::format("{}@{}", name, start.picoseconds() / 1000);
    is_second = pass.with_next;
  }
  return text;
}

// The longest time from the first start to the last end of one rank: the step where no barrier
// comes before the optimizer.
SimTime longest_span(const PipelineTimeline& timeline) {
  SimTime longest;
  for (const std::vector<TimedPass>& passes : timeline.ranks) {
    longest = std::max(longest, passes.back().end - passes.front().start);
  }
  return longest;
}

// Forward passes whose activations a rank holds at once, from the start of the forward to the end
// of the gradient of the weights.
int max_activations(const std::vector<TimedPass>& passes) {
  // At one instant, what ends is freed before what starts is held.
  std::vector<std::pair<SimTime, int>> changes;
  for (const TimedPass& pass : passes) {
    if (pass.pass.kind == PassKind::Forward) {
      changes.emplace_back(pass.start, 1);
    } else if (pass.pass.kind != PassKind::InputGradient) {
      changes.emplace_back(pass.end, -1);
    }
  }
  std::sort(changes.begin(), changes.end());
  int held = 0;
  int max = 0;
  for (const auto& [time, change] : changes) {
    held += change;
    max = std::max(max, held);
  }
  return max;
}

void require_result(const PipelineShape& shape, const PipelineTimeline& timeline,
                    const ConfigNode& result) {
  REQUIRE(timeline.makespan() == units(integer(result, "makespan")));
  REQUIRE(longest_span(timeline) == units(integer(result, "max_span")));
  const std::vector<int> starts = integers(result.required("start"));
  const std::vector<int> ends = integers(result.required("end"));
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    REQUIRE(timeline.ranks[at].front().start == units(starts[at]));
    REQUIRE(timeline.ranks[at].back().end == units(ends[at]));
  }
  REQUIRE(timeline.busy(0) == units(integer(result, "busy")));
  REQUIRE(timeline.makespan() - timeline.busy(0) == units(integer(result, "bubble")));
}

}  // namespace

TEST_CASE("orders and times of small pipelines are those of the papers", "[pipeline]") {
  ConfigDocument document = ConfigDocument::load(kSchedules);
  const ConfigNode times = document.root().required("times");
  int cases = 0;
  for (const ConfigNode& node : document.root().required("cases").items()) {
    INFO(node.required("id").as_string());
    const PipelineShape shape = shape_of(node);
    const PipelineTimeline unit = run_pipeline(shape, times_named(shape, times, "unit"));
    const std::vector<ConfigNode> order = node.required("order").items();
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
      REQUIRE(text_of(shape, unit.ranks[rank]) == order[rank].as_string());
    }
    const ConfigNode results = node.required("results");
    for (const std::string name : {"unit", "unequal", "odd", "comm"}) {
      INFO(name);
      require_result(shape, run_pipeline(shape, times_named(shape, times, name)),
                     results.required(name));
    }
    const std::vector<int> peaks = integers(results.required("peak_activations"));
    for (int rank = 0; rank < shape.ranks; ++rank) {
      REQUIRE(max_activations(unit.ranks[static_cast<std::size_t>(rank)]) ==
              peaks[static_cast<std::size_t>(rank)]);
    }
    ++cases;
  }
  REQUIRE(cases == 22);
}

TEST_CASE("large pipelines take the times that an independent scheduler found", "[pipeline]") {
  ConfigDocument document = ConfigDocument::load(kSchedules);
  const ConfigNode times = document.root().required("times");
  int cases = 0;
  for (const ConfigNode& node : document.root().required("large").items()) {
    const PipelineShape shape = shape_of(node);
    INFO(to_string(shape.schedule) << " p " << shape.ranks << " chunks " << shape.chunks);
    const auto run = [&](std::string_view name) {
      return run_pipeline(shape, times_named(shape, times, name));
    };
    const PipelineTimeline unit = run("unit");
    REQUIRE(unit.makespan() == units(integer(node, "unit")));
    REQUIRE(longest_span(unit) == units(integer(node, "unit_max_span")));
    REQUIRE(run("unequal").makespan() == units(integer(node, "unequal")));
    REQUIRE(run("comm").makespan() == units(integer(node, "comm")));
    REQUIRE(longest_span(run("comm")) == units(integer(node, "comm_max_span")));
    int peak = 0;
    for (int rank = 0; rank < shape.ranks; ++rank) {
      peak = std::max(peak, max_activations(unit.ranks[static_cast<std::size_t>(rank)]));
    }
    REQUIRE(peak == integer(node, "max_peak_activations"));
    ++cases;
  }
  REQUIRE(cases == 24);
}

TEST_CASE("unequal stages: the slowest sets the pace", "[pipeline]") {
  ConfigDocument document = ConfigDocument::load(kSchedules);
  for (const ConfigNode& node : document.root().required("uneven").items()) {
    INFO(node.required("id").as_string());
    PipelineShape shape{.ranks = integer(node, "p"), .micro_batches = integer(node, "m")};
    const std::vector<int> forward = integers(node.required("forward"));
    const std::vector<int> backward = integers(node.required("backward"));
    PipelineTimes times;
    for (std::size_t stage = 0; stage < forward.size(); ++stage) {
      times.stages.push_back({.forward = units(forward[stage]),
                              .input_gradient = units(backward[stage]),
                              .weight_gradient = {}});
    }
    const PipelineTimeline timeline = run_pipeline(shape, times);
    REQUIRE(timeline.makespan() == units(integer(node, "onef1b_makespan")));
    const std::vector<int> ends = integers(node.required("onef1b_end"));
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      REQUIRE(timeline.ranks[rank].back().end == units(ends[rank]));
    }
    shape.schedule = &kGPipe;
    REQUIRE(run_pipeline(shape, times).makespan() == units(integer(node, "gpipe_makespan")));
  }
}

TEST_CASE("with equal stages the bubbles are those of the formulas", "[pipeline]") {
  int cases = 0;
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    for (const int p : {2, 3, 4, 8}) {
      for (const int m : {2 * p, 5 * p, 8 * p}) {
        const PipelineShape shape{.schedule = schedule,
                                  .ranks = p,
                                  .micro_batches = m,
                                  .chunks = schedule->chunks.value_or(3)};
        const PipelineTimes times = equal_stages(shape, {4, 5, 3, 0});
        const std::optional<SimTime> bubble = closed_bubble(shape, times.stages.front());
        if (!bubble) {
          continue;
        }
        const PipelineTimeline timeline = run_pipeline(shape, times);
        INFO(to_string(schedule) << " p " << p << " m " << m);
        REQUIRE(timeline.busy(0) == units(m * shape.chunks * (4 + 5 + 3)));
        REQUIRE(timeline.makespan() - timeline.busy(0) == *bubble);
        ++cases;
      }
    }
  }
  REQUIRE(cases == 4 * 12);
}

// Qi et al., arXiv 2405.15362: with equal passes V-Half has half of the bubble of 1F1B, V-Min two
// thirds; a bubble of 1F1B is 6 (p - 1) passes of a chunk.
TEST_CASE("V-Half and V-Min pay with bubbles for their memory", "[pipeline]") {
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32}) {
    const auto bubble = [&](const PipelineSchedule* schedule, std::array<int, 4> passes) {
      const PipelineShape shape{
          .schedule = schedule, .ranks = p, .micro_batches = 6 * p, .chunks = 2};
      const PipelineTimeline timeline = run_pipeline(shape, equal_stages(shape, passes));
      REQUIRE(timeline.busy(0) ==
              units(shape.micro_batches * 2 * (passes[0] + passes[1] + passes[2])));
      return (timeline.makespan() - timeline.busy(0)) / units(1);
    };
    INFO("p " << p);
    const double half = bubble(&kVHalf, {1, 1, 1, 0});
    const double min = bubble(&kVMin, {1, 1, 1, 0});
    // The authors' generator, which also moves forwards, needs 3 p - 7, or 3 p - 4 for odd p.
    REQUIRE(half >= 3 * p - 7);
    REQUIRE(half <= 3.1 * p);
    // It needs 4 p - 5 as well, or 4 p - 7 where 3 divides p.
    REQUIRE(min == 4 * p - 5);
    REQUIRE(bubble(&kVMin, {10, 11, 7, 2}) > bubble(&kVHalf, {10, 11, 7, 2}));
  }
}

TEST_CASE("transfers that keep their ranks busy cost both ends of each", "[pipeline]") {
  const PipelineShape shape{.ranks = 2, .micro_batches = 1};
  PipelineTimes times = equal_stages(shape, {10, 10, 10, 3});
  // Forward, transfer, forward and backward, transfer, backward.
  REQUIRE(run_pipeline(shape, times).makespan() == units(10 + 3 + 10 + 20 + 3 + 20));
  times.transfers = PipelineTransfers::Synchronous;
  REQUIRE(run_pipeline(shape, times).makespan() == units(10 + 3 + 10 + 20 + 3 + 20));
  // With more micro-batches each of them pays.
  const PipelineShape longer{.ranks = 2, .micro_batches = 16};
  times.transfers = PipelineTransfers::Asynchronous;
  const SimTime hidden = run_pipeline(longer, times).makespan();
  times.transfers = PipelineTransfers::Synchronous;
  REQUIRE(run_pipeline(longer, times).makespan() > hidden);
}

TEST_CASE("neighbours of a ring have a place each", "[pipeline]") {
  for (const int ranks : {2, 3, 50'000}) {
    const int last = ranks - 1;
    REQUIRE(neighbour_index(0, 1, ranks) == 0);
    REQUIRE(neighbour_index(1, 0, ranks) == 3);
    REQUIRE(neighbour_index(last, last - 1, ranks) == 2 * static_cast<std::size_t>(last) + 1);
    // Around the end; of two ranks that is the other one again.
    REQUIRE(neighbour_index(0, last, ranks) == (ranks == 2 ? 0U : 1U));
    REQUIRE(neighbour_index(last, 0, ranks) ==
            2 * static_cast<std::size_t>(last) + (ranks == 2 ? 1 : 0));
  }
}

TEST_CASE("each pair of ranks has a transfer time of its own", "[pipeline]") {
  const PipelineShape shape{.ranks = 3, .micro_batches = 1};
  PipelineTimes times = equal_stages(shape, {10, 10, 10, 0});
  times.transfer_to_neighbour.resize(6);
  times.transfer_to_neighbour[neighbour_index(0, 1, 3)] = units(1);
  times.transfer_to_neighbour[neighbour_index(1, 2, 3)] = units(5);
  times.transfer_to_neighbour[neighbour_index(2, 1, 3)] = units(7);
  times.transfer_to_neighbour[neighbour_index(1, 0, 3)] = units(2);
  for (const PipelineTransfers kind :
       {PipelineTransfers::Asynchronous, PipelineTransfers::Synchronous}) {
    times.transfers = kind;
    REQUIRE(run_pipeline(shape, times).makespan() == units(3 * 10 + 1 + 5 + 3 * 20 + 7 + 2));
  }
}

}  // namespace trainyard
