// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/recommender_graph.h"

#include <string>

#include "support/recommenders.h"

namespace trainyard {
namespace {

RecommenderRun run_small(int gpus, const RecommenderWorkload& workload) {
  return run_recommender(shipped_cluster("dgx-h100", {.nodes = 1, .gpus_per_node = gpus}), workload,
                         recommender_software("torchrec"), plain_tables());
}

RecommenderWorkload with_overlap(bool overlap) {
  RecommenderWorkload workload = recommender_workload(shipped_recommender("dlrm-mlperf"), 65536);
  workload.overlap_input = overlap;
  workload.overlap_tables = overlap;
  workload.overlap_data = overlap;
  return workload;
}

}  // namespace

TEST_CASE("on one GPU a step is the sum of what it computes", "[recommender]") {
  const RecommenderWorkload workload = recommender_workload(small_recommender(), 4096);
  const RecommenderRun run = run_small(1, workload);
  StepParts sum;
  const std::vector<int> servers{0};
  const RecommenderSoftware software = recommender_software("torchrec");
  const GpuModel& gpu = shipped_catalogue().gpus().at("H100-SXM");
  const RecommenderTimes times = recommender_times(
      {.workload = workload,
       .software = software,
       .rates = recommender_rates(gpu, shipped_rates(), software, workload.precision),
       .sharding = run.sharding,
       .server_of_rank = servers},
      0);
  for (const StepParts& parts : {times.lookups, times.bottom_forward, times.interaction_forward,
                                 times.top_forward, times.top_backward, times.interaction_backward,
                                 times.bottom_backward, times.updates, times.optimizer}) {
    sum += parts;
  }
  REQUIRE(run.result.finish == sum.total());
  sum[StepPart::Fixed] = software.fixed;
  REQUIRE(run.step.parts == sum);
  REQUIRE(run.calls == 0);
}

TEST_CASE("traffic is exposed whole where nothing overlaps, and less where it does",
          "[recommender]") {
  const RecommenderRun exposed = run_small(8, with_overlap(false));
  const RecommenderRun beside = run_small(8, with_overlap(true));
  // Indices, sums, gradients of sums, and two sums of gradients.
  REQUIRE(exposed.calls == 4);
  REQUIRE(exposed.step.parts[StepPart::Context] > SimTime());
  REQUIRE(exposed.step.parts[StepPart::Expert] > SimTime());
  REQUIRE(beside.step.time < exposed.step.time);
  REQUIRE(beside.step.parts[StepPart::Expert] < exposed.step.parts[StepPart::Expert]);
  REQUIRE(exposed.step.parts.total() == exposed.step.time);
  REQUIRE(beside.step.parts.total() == beside.step.time);
}

TEST_CASE("every part of a recommendation model's step has a name", "[recommender]") {
  const RecommenderRun run = run_small(8, with_overlap(true));
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const auto part = static_cast<StepPart>(index);
    INFO(to_string(part));
    REQUIRE((run.step.parts[part] == SimTime() || !recommender_part_name(part).empty()));
  }
  REQUIRE(recommender_part_name(StepPart::Attention) == "lookups");
  REQUIRE(recommender_part_name(StepPart::Pipeline).empty());
}

}  // namespace trainyard
