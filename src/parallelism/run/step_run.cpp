// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/step_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/memory/step_memory.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/run/gpu_kinds.h"
#include "sim/config_error.h"
#include "sim/ids.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

void add_memory(const Cluster& cluster, const Workload& workload, const SoftwareProfile& software,
                const GpuKinds& kinds, StepRun& run) {
  StepMemory memory = step_memory(workload.model, run.held, software, workload.routing);
  const std::vector<const GpuModel*> gpus = kinds.smallest_by_place(run.held);
  const auto size_of = [&](const RankMemory& rank) {
    return device_capacity(gpus[as_index(rank.rank)]->memory.value);
  };
  const auto tightest = std::ranges::max_element(memory.ranks, {}, [&](const RankMemory& rank) {
    return rank.highest().use.device() - size_of(rank);
  });
  memory.worst = static_cast<std::size_t>(tightest - memory.ranks.begin());
  run.memory = memory.highest().highest().use;
  run.memory_size = size_of(memory.highest());
  run.memory_verdict = memory_verdict(memory, run.memory_size);
  if (kinds.models.size() > 1) {
    run.memory_verdict +=
        fmt::format(" (on {}, the smallest GPU of the stage)", gpus[memory.worst]->name);
  }
  if (run.plan.offload.any()) {
    run.host_memory = host_memory_use(cluster, run.plan, memory);
  }
}

void check_unfolded(std::size_t gpus, std::string_view why) {
  if (gpus > static_cast<std::size_t>(kMaxUnfoldedRanks)) {
    throw ConfigError(fmt::format("step: expected at most {} GPUs for {}, found {}",
                                  kMaxUnfoldedRanks, why, gpus));
  }
}

// In a folded graph all ranks of the slow one's stage represent it. Ranks of its stage
// wait for it in every collective, and all pipelines for its own before the optimizer, so that the
// step takes as long as if the whole stage were as slow. One that is faster than the others of its
// stage waits for them.
GraphRunOptions options_of(const SlowRank& slow, const StepJob& job, Folding folding) {
  if (slow.rank < 0 || slow.rank >= job.plan.ranks()) {
    throw ConfigError(fmt::format("slow rank: expected a rank from 0 to {}, found {}",
                                  job.plan.ranks() - 1, slow.rank));
  }
  const auto place_of = [&](int rank) {
    const std::vector<int> ranks = group_of(job.plan, RankGroupKind::Pipeline, rank);
    return std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  };
  const auto place = place_of(slow.rank);
  const bool sets_pace = slow.ppm > 1'000'000 || job.plan.ranks() == job.plan.pipeline;
  GraphRunOptions options;
  for (int rank = 0; rank < job.plan.ranks(); ++rank) {
    const bool is_slow =
        folding == Folding::Folded ? sets_pace && place_of(rank) == place : rank == slow.rank;
    options.compute_ppm.push_back(is_slow ? slow.ppm : 1'000'000);
  }
  return options;
}

Folding folding_of(const StepTables& tables) {
  return tables.shares_network || tables.jitter.has_any() ? Folding::Unfolded : Folding::Folded;
}

StepGraphRun run_graph_of(const StepJob& job, const StepTables& tables, GraphOnCluster& runner,
                          const GraphRunOptions& options, const ComputeJitter& jitter) {
  const Folding folding = folding_of(tables);
  if (folding == Folding::Unfolded) {
    check_unfolded(static_cast<std::size_t>(job.plan.ranks()),
                   tables.shares_network ? "all traffic on one network" : "jitter");
  }
  std::optional<StepGraphRun> run;
  runner.with_traffic([&](Simulator& simulator, GraphTraffic& traffic) {
    run = run_step_graph(job, simulator, traffic, folding, options, jitter);
  });
  return std::move(*run);
}

void run_method(const StepJob& job, const StepTables& tables, GraphOnCluster& runner,
                StepRun& run) {
  if (tables.method == StepMethod::ClosedForms) {
    run.step = step_time(job, runner.times());
    return;
  }
  run.graph = run_graph_of(job, tables, runner, {}, {});
  if (tables.slow_rank || tables.jitter.has_any()) {
    const StepTime& usual = run.graph->step;
    run.usual_time =
        usual.time - (tables.jitter.has_any() ? usual.parts[StepPart::Jitter] : SimTime());
    const GraphRunOptions options = tables.slow_rank
                                        ? options_of(*tables.slow_rank, job, folding_of(tables))
                                        : GraphRunOptions();
    run.graph = run_graph_of(job, tables, runner, options, tables.jitter);
  }
  run.step = run.graph->step;
}

// The workers hold no states of the optimizer, as with one on the host.
StepRun run_with_servers(const Cluster& cluster, const Workload& workload,
                         const SoftwareProfile& software, const StepTables& tables) {
  if (tables.method != StepMethod::Graph || !tables.shares_network || tables.slow_rank) {
    throw ConfigError(
        "parameter servers: expected --method graph --runtime plain --traffic shared, without a "
        "slow rank, as messages meet at servers, found another way");
  }
  if (tables.extras.mixed || tables.extras.times_messages) {
    throw ConfigError(
        fmt::format("{}: expected a step without parameter servers, found one with them",
                    tables.extras.mixed ? "--fidelity mixed" : "--message-times"));
  }
  const ServerPlaces places = server_places(cluster, *workload.plan.servers);
  check_unfolded(places.workers.gpus.size(), "parameter servers");
  StepRun run{.plan = plan_for(workload, static_cast<int>(places.workers.gpus.size())),
              .overlap = overlap_of(workload.overlap, software)};
  const GpuModel& gpu = gpu_of(places.workers, "parameter servers");
  const ComputeRates rates = compute_rates(gpu, tables.rates, software, workload.precision);
  run.peak = rates.peak;
  run.held = run.plan;
  run.held.offload.optimizer = true;
  add_memory(places.workers, workload, software, {.models = {&gpu}}, run);
  const std::vector<int> hosts = servers_of_gpus(places.workers);
  run.servers = run_servers({.model = workload.model,
                             .plan = run.plan,
                             .rates = rates,
                             .software = software,
                             .overlap = run.overlap,
                             .server_of_rank = hosts,
                             .loads = workload.routing},
                            places, tables.fidelity, tables.jitter);
  run.step = run.servers->step;
  return run;
}

}  // namespace

StepRun run_workload(const Cluster& cluster, const Workload& workload,
                     const SoftwareProfile& software, const StepTables& tables) {
  if (workload.plan.servers) {
    return run_with_servers(cluster, workload, software, tables);
  }
  StepRun run{.plan = plan_for(workload, static_cast<int>(cluster.gpus.size())),
              .overlap = overlap_of(workload.overlap, software)};
  const GpuKinds kinds = gpu_kinds(cluster);
  const std::vector<ComputeRates> rates = kinds.rates(tables.rates, software, workload.precision);
  run.held = run.plan;
  add_memory(cluster, workload, software, kinds, run);
  run.peak = kinds.mean_peak(rates);
  GraphOnCluster runner(cluster, tables);
  ClusterTimes& times = runner.times();
  times.use_plan(run.plan);
  const StepJob job{.model = workload.model,
                    .plan = run.plan,
                    .rates = rates.front(),
                    .software = software,
                    .overlap = run.overlap,
                    .server_of_rank = times.servers(),
                    .domain_of_rank = times.domains(),
                    .loads = workload.routing,
                    .host = host_rates_for(run.plan, cluster),
                    .kinds = rates,
                    .kind_of_rank = kinds.of_rank};
  run_method(job, tables, runner, run);
  run.kinds_note = kinds_note(kinds, job);
  run.compression =
      compression_figures(place_parameters(job.model, pipeline_stages(run.plan, job.model),
                                           run.plan, run.step.critical_rank),
                          run.plan, software, job.rates);
  run.calls = times.calls();
  run.simulated = times.simulated();
  run.packets = runner.packets();
  run.extras = runner.extras();
  run.min_share = times.min_share();
  run.beyond_profile.assign(times.beyond_profile().begin(), times.beyond_profile().end());
  return run;
}

}  // namespace trainyard
