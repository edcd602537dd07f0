// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/recommender_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "parallelism/graph/graph_blame.h"
#include "parallelism/graph/graph_network.h"
#include "parallelism/lowering/recommender_graph.h"
#include "parallelism/memory/recommender_memory.h"
#include "parallelism/traffic/cluster_times.h"
#include "sim/config_error.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

// Vectors that a batch looks up, so that their bytes fit 64 bits.
constexpr double kMostLookedUp = 1e16;

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
  if (elements > kMostLookedUp) {
    throw ConfigError(fmt::format(
        "batch.global: expected at most {:.0e} elements of looked-up vectors, found {:.3g}",
        kMostLookedUp, elements));
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

GraphRunOptions options_of(const StepTables& tables, const OperationGraph& graph) {
  GraphRunOptions options;
  if (tables.slow_rank) {
    if (!graph.has_rank(tables.slow_rank->rank)) {
      throw ConfigError(fmt::format("slow rank: expected a rank from 0 to {}, found {}",
                                    graph.ranks() - 1, tables.slow_rank->rank));
    }
    options.compute_ppm.assign(static_cast<std::size_t>(graph.ranks()), 1'000'000);
    options.compute_ppm[static_cast<std::size_t>(tables.slow_rank->rank)] = tables.slow_rank->ppm;
  }
  return tables.jitter.has_any() ? with_jitter(std::move(options), tables.jitter, graph) : options;
}

class RecommenderRunner {
 public:
  RecommenderRunner(const Cluster& cluster, const StepTables& tables)
      : cluster_(cluster), tables_(tables) {
    if (tables.nccl != nullptr) {
      nccl_.emplace(ClusterTimes::Nccl{.catalogue = tables.catalogue,
                                       .profile = *tables.nccl,
                                       .engine = tables.engine,
                                       .version = tables.nccl_version,
                                       .searches = tables.searches});
    }
    times_.emplace(cluster, nccl_, tables.fidelity);
  }

  [[nodiscard]] GraphResult run(const OperationGraph& graph, const GraphRunOptions& options) {
    Simulator simulator;
    if (!tables_.shares_network) {
      TimedTraffic traffic(*times_);
      return run_graph(simulator, graph, traffic, options);
    }
    SharedNetwork network(simulator, cluster_, tables_.fidelity);
    NetworkTraffic traffic(simulator, cluster_, network);
    return run_graph(simulator, graph, traffic, options);
  }
  [[nodiscard]] const ClusterTimes& times() const { return *times_; }

 private:
  const Cluster& cluster_;
  const StepTables& tables_;
  std::optional<ClusterTimes::Nccl> nccl_;
  std::optional<ClusterTimes> times_;
};

StepTime step_of(const RecommenderJob& job, const RecommenderRun& run,
                 const GraphRunOptions& options, bool has_jitter) {
  const std::vector<StepParts> ranks = blame_of(run.graph, run.result, options);
  const auto busiest =
      std::min_element(ranks.begin(), ranks.end(), [](const StepParts& a, const StepParts& b) {
        return a[StepPart::Bubble] < b[StepPart::Bubble];
      });
  StepTime step{.time = {},
                .parts = *busiest,
                .busiest_rank = static_cast<int>(busiest - ranks.begin()),
                .forward = {},
                .backward = {}};
  step.parts[StepPart::Fixed] = job.software.fixed;
  if (!has_jitter) {
    step.parts[StepPart::Jitter] = jitter_of(step.parts.total(), job.server_of_rank);
  }
  step.time = step.parts.total();
  return step;
}

}  // namespace

RecommenderRun run_recommender(const Cluster& cluster, const RecommenderWorkload& workload,
                               const RecommenderSoftware& software, const StepTables& tables) {
  const auto ranks = static_cast<int>(cluster.gpus.size());
  check_batch(workload, ranks);
  if (tables.shares_network && ranks > kMostUnfoldedRanks) {
    throw ConfigError(fmt::format("--traffic shared: expected at most {} GPUs, found {}",
                                  kMostUnfoldedRanks, ranks));
  }
  const GpuModel& gpu = gpu_of(cluster, tables.catalogue);
  RecommenderRun run{.ranks = ranks,
                     .step = {},
                     .sharding = {},
                     .memory = {},
                     .memory_size = device_capacity(gpu.memory.value),
                     .memory_verdict = {},
                     .result = {},
                     .beyond_profile = {},
                     .usual_time = {}};
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
  check(run.graph, "recommender");
  RecommenderRunner runner(cluster, tables);
  run.result = runner.run(run.graph, {});
  const bool has_jitter = tables.jitter.has_any();
  GraphRunOptions options;
  if (tables.slow_rank || has_jitter) {
    run.usual_time = step_of(job, run, options, has_jitter).time;
    options = options_of(tables, run.graph);
    run.result = runner.run(run.graph, options);
  }
  run.step = step_of(job, run, options, has_jitter);
  if (!tables.shares_network) {
    run.calls = runner.times().calls();
    run.simulated = runner.times().simulated();
    const auto& beyond = runner.times().beyond_profile();
    run.beyond_profile.assign(beyond.begin(), beyond.end());
  }
  return run;
}

}  // namespace trainyard
