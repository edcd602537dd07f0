// SPDX-License-Identifier: Apache-2.0
// Searches for jobs whose published plans are in validation/training: what is found is at least as
// fast, in simulation, as what was run.
#include "support/catch.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "calibration/training/training_case.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/search/plan_search.h"
#include "parallelism/traffic/cluster_times.h"
#include "parallelism/traffic/shared_times.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/paths.h"
#include "support/search_cases.h"
#include "support/step_times.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();
constexpr int kMaxGpusOfRow = 64;
// Of a rank's traffic, B/s: about a NIC. Links of the cluster would take minutes and change nothing
// in what is compared, as both plans have the same.
constexpr double kTrafficRate = 25e9;

bool is_of_16_bits(Precision precision) {
  return precision == Precision::Bf16 || precision == Precision::Fp16;
}

// The first rows of a case with different plans on a few servers.
std::vector<TrainingRun> rows_of(const LoadedTrainingCase& loaded, std::size_t max) {
  std::vector<TrainingRun> runs;
  for (const TrainingCaseRow& row : loaded.rows) {
    const bool is_wanted = row.run && row.run->gpus <= kMaxGpusOfRow && row.run->gpus >= 8 &&
                           row.run->software.profile && is_of_16_bits(row.run->precision) &&
                           runs.size() < max;
    const bool is_new =
        is_wanted && std::none_of(runs.begin(), runs.end(), [&](const TrainingRun& other) {
          return other.plan.tensor == row.run->plan.tensor &&
                 other.plan.pipeline == row.run->plan.pipeline;
        });
    if (is_new) {
      runs.push_back(*row.run);
    }
  }
  return runs;
}

struct Found {
  SimTime published;
  SimTime best;
};

Found search_for(const TrainingCase& item, const TrainingRun& run) {
  const Cluster cluster = load_cluster(item.cluster, shipped_catalogue(), item.overrides(run));
  REQUIRE(static_cast<int>(cluster.gpus.size()) == run.gpus);
  const Topology& topology = cluster.topology;
  const GpuModel& gpu =
      shipped_catalogue().gpus().at(topology.parts()[topology.node(cluster.gpus.front()).part]);
  const SoftwareProfile software = shipped_software(*run.software.profile);
  const ComputeRates rates = compute_rates(gpu, shipped_rates(), software, Precision::Bf16);
  const ClusterTimes places(cluster, std::nullopt, Fidelity::Analytical);
  SharedTimes times([] { return std::make_unique<SteadyGroupTimes>(kTrafficRate); });
  // It ran, whatever the model of memory says.
  const Bytes needed =
      step_memory(run.model, run.plan, software, {}).highest().highest().use.device();
  const SearchTask task{.model = run.model,
                        .rates = rates,
                        .software = software,
                        .overlap = overlap_of({}, software),
                        .server_of_rank = places.servers(),
                        .domain_of_rank = places.domains(),
                        .memory = std::max(gpu.memory.value, needed)};
  Workload workload;
  workload.model = run.model;
  workload.plan = run.plan;
  PlanAxes axes = default_axes(workload, run.gpus, cluster.gpus_per_node);
  axes.context = {run.plan.context};
  axes.orders = {kMegatronOrder};
  axes.chunks = {2, std::max(2, run.plan.chunks)};
  axes.micro_batch = {run.plan.micro_batch};
  axes.recompute = {Recompute::None};
  if (run.plan.recompute != Recompute::None) {
    axes.recompute.push_back(run.plan.recompute);
  }
  axes.zero_stage = {run.plan.zero_stage};
  const PlanSearch found =
      search_plans(task, plans_of(axes, run.plan, run.gpus), times, {.best = 1}, run_serially);
  REQUIRE(!found.timed.empty());
  const StepJob job{.model = run.model,
                    .plan = run.plan,
                    .rates = rates,
                    .software = software,
                    .overlap = task.overlap,
                    .server_of_rank = places.servers(),
                    .domain_of_rank = places.domains()};
  return {.published = step_time(job, times).time, .best = found.timed.front().step.time};
}

}  // namespace

TEST_CASE("no published plan is faster than what a search finds", "[published-plans]") {
  ModelFolder models(kConfigsFolder / "workloads" / "models");
  int compared = 0;
  for (const char* name : {"korthikanti", "zero-bubble", "torchtitan-h100", "fms-h100",
                           "megatron-sc21", "nemo-h100", "mosaicml-h100", "vtrain-multi-node"}) {
    const LoadedTrainingCase loaded = load_training_case(
        kRoot / "validation" / "cases" / "training" / (std::string(name) + ".yaml"), kRoot, models);
    for (const TrainingRun& run : rows_of(loaded, kIsSanitized ? 1 : 2)) {
      INFO(name << ": " << run.id);
      const Found found = search_for(loaded.item, run);
      REQUIRE(found.best <= found.published);
      ++compared;
    }
  }
  REQUIRE(compared >= (kIsSanitized ? 5 : 10));
}

}  // namespace trainyard
