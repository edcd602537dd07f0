// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/recommender_run.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/lowering/recommender_graph.h"
#include "parallelism/memory/recommender_memory.h"
#include "parallelism/run/gpu_kinds.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Vectors that a batch looks up, so that their bytes fit 64 bits.
constexpr double kMaxLookedUp = 1e16;

void check_batch(const RecommenderWorkload& workload, int ranks) {
  if (workload.batch % ranks != 0) {
    throw ConfigError(
        fmt::format("batch.global: expected a multiple of the number of GPUs, found {} and {}",
                    workload.batch, ranks));
  }
  double elements = 0.0;
  for (const EmbeddingTable& table : workload.model.tables) {
    elements += static_cast<double>(workload.batch) * static_cast<double>(table.lookups) *
                static_cast<double>(workload.model.width);
  }
  if (elements > kMaxLookedUp) {
    throw ConfigError(fmt::format(
        "batch.global: expected at most {:.0e} elements of looked-up vectors, found {:.3g}",
        kMaxLookedUp, elements));
  }
}

void add_memory(const RecommenderJob& job, RecommenderRun& run) {
  std::size_t fullest = 0;
  for (std::size_t rank = 0; rank < run.sharding.dealt.size(); ++rank) {
    const MemoryUse use = recommender_memory(job, rank);
    if (rank == 0 || use.device() > run.memory.device()) {
      run.memory = use;
      fullest = rank;
    }
  }
  run.memory_verdict =
      describe_fit(run.memory, run.memory_size, fmt::format("rank {}", fullest), "");
}

}  // namespace

RecommenderRun run_recommender(const Cluster& cluster, const RecommenderWorkload& workload,
                               const RecommenderSoftware& software, const StepTables& tables) {
  const auto ranks = static_cast<int>(cluster.gpus.size());
  check_batch(workload, ranks);
  check_unfolded(tables, ranks);
  const GpuModel& gpu = gpu_of(cluster, "recommender");
  RecommenderRun run;
  run.memory_size = device_capacity(gpu.memory.value);
  run.sharding = shard_tables(workload.model, workload.rules, ranks,
                              room_for_tables(workload, run.memory_size));
  const std::vector<int> servers = servers_of_gpus(cluster);
  const RecommenderJob job{
      .workload = workload,
      .software = software,
      .rates = recommender_rates(gpu, tables.rates, software, workload.precision),
      .sharding = run.sharding,
      .server_of_rank = servers};
  run.peak = job.rates.peak;
  run.overlaps_input = job.overlaps_input();
  run.overlaps_tables = job.overlaps_tables();
  run.overlaps_data = job.overlaps_data();
  add_memory(job, run);
  run.graph = lower_recommender(job);
  run_lowered(cluster, tables, software.fixed, "recommender", run);
  return run;
}

}  // namespace trainyard
