// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/job_mix.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "network/engines/make_network.h"
#include "parallelism/graph/graph_jobs.h"
#include "parallelism/graph/graph_network.h"
#include "parallelism/lowering/graph_lowering.h"
#include "parallelism/run/gpu_kinds.h"
#include "parallelism/traffic/cluster_times.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

// Returns for each job the ranks of the cluster that its servers have. Throws ConfigError.
std::vector<std::vector<int>> ranks_of(const Cluster& cluster, std::span<const MixedJob> jobs) {
  const int servers = static_cast<int>(cluster.server_gpus.size());
  std::vector<int> first(cluster.server_gpus.size() + 1, 0);
  std::partial_sum(cluster.server_gpus.begin(), cluster.server_gpus.end(), first.begin() + 1);
  std::map<int, const MixedJob*> owner;
  std::vector<std::vector<int>> all;
  for (const MixedJob& job : jobs) {
    std::vector<int>& ranks = all.emplace_back();
    for (const int server : job.servers) {
      if (server < 0 || server >= servers) {
        throw ConfigError(fmt::format("{}: expected servers from 0 to {}, found {}", job.name,
                                      servers - 1, server));
      }
      const auto [place, is_free] = owner.emplace(server, &job);
      if (!is_free) {
        throw ConfigError(fmt::format(
            "{}: expected servers of its own, found server {}, which {}", job.name, server,
            place->second == &job ? "is named twice" : place->second->name + " has"));
      }
      const auto index = static_cast<std::size_t>(server);
      for (int rank = first[index]; rank < first[index + 1]; ++rank) {
        ranks.push_back(rank);
      }
    }
    CHECK(!ranks.empty(), "a job has servers");
  }
  return all;
}

// The part of the cluster that a job has, and its step there.
struct PlacedJob {
  PlacedJob(const Cluster& cluster, const std::vector<int>& ranks, const MixedJob& job,
            const StepTables& tables)
      : part(cluster) {
    keep_ranks(cluster.gpus, ranks, part);
    const Workload& workload = job.workload;
    const ParallelPlan plan = plan_for(workload, gpus());
    const GpuKinds kinds = gpu_kinds(part);
    const std::vector<ComputeRates> rates =
        kinds.rates(tables.rates, job.software, workload.precision);
    const ClusterTimes places(part, {}, tables.fidelity);
    const StepJob step{.model = workload.model,
                       .plan = plan,
                       .rates = rates.front(),
                       .software = job.software,
                       .overlap = overlap_of(workload.overlap, job.software),
                       .server_of_rank = places.servers(),
                       .domain_of_rank = places.domains(),
                       .loads = workload.routing,
                       .host = host_rates_for(plan, part),
                       .kinds = rates,
                       .kind_of_rank = kinds.of_rank};
    graph = lower_step(step, Folding::Unfolded).graph;
    check(graph, job.name);
  }

  [[nodiscard]] int gpus() const { return static_cast<int>(part.gpus.size()); }

  Cluster part;
  OperationGraph graph = OperationGraph(0);
};

// Jobs side by side on one network.
class Bench {
 public:
  Bench(const Cluster& cluster, const StepTables& tables)
      : network_(simulator_, cluster, tables.fidelity, tables.packets, tables.extras) {}

  void add(const std::string& name, const PlacedJob& job) {
    traffic_.push_back(std::make_unique<NetworkTraffic>(simulator_, job.part, network_));
    jobs_.push_back({.name = name, .graph = job.graph, .traffic = *traffic_.back()});
  }
  std::vector<std::vector<SimTime>> run(int steps) {
    return run_together(simulator_, jobs_, steps);
  }

  [[nodiscard]] SimTime time() const { return simulator_.now(); }
  [[nodiscard]] std::vector<LinkUse> link_use() const { return network_.engine->link_use(); }
  [[nodiscard]] NetworkStats stats() const { return network_.engine->stats(); }
  [[nodiscard]] ExtraResults extras() const { return extra_results(*network_.engine); }

 private:
  Simulator simulator_;
  SharedNetwork network_;
  std::vector<std::unique_ptr<NetworkTraffic>> traffic_;
  std::vector<GraphJob> jobs_;
};

}  // namespace

double MixedJobTimes::mean_seconds() const {
  double sum = 0.0;
  for (const SimTime step : together) {
    sum += step.seconds();
  }
  return sum / static_cast<double>(together.size());
}

SimTime MixedJobTimes::longest() const {
  return *std::max_element(together.begin(), together.end());
}

double MixedJobTimes::slowdown() const {
  return mean_seconds() / alone.seconds();
}

JobMix run_job_mix(const Cluster& cluster, std::span<const MixedJob> jobs, const StepTables& tables,
                   int steps) {
  CHECK(tables.fidelity != Fidelity::Analytical, "an engine in which jobs contend");
  const std::vector<std::vector<int>> ranks = ranks_of(cluster, jobs);
  const std::size_t used = std::accumulate(
      ranks.begin(), ranks.end(), std::size_t{0},
      [](std::size_t sum, const std::vector<int>& of_job) { return sum + of_job.size(); });
  if (used > static_cast<std::size_t>(kMaxUnfoldedRanks)) {
    throw ConfigError(fmt::format("jobs: expected at most {} GPUs of all together, found {}",
                                  kMaxUnfoldedRanks, used));
  }
  JobMix mix;
  std::vector<std::unique_ptr<PlacedJob>> placed;
  Bench together(cluster, tables);
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const MixedJob& job = jobs[index];
    placed.push_back(std::make_unique<PlacedJob>(cluster, ranks[index], job, tables));
    Bench single(cluster, tables);
    single.add(job.name, *placed.back());
    mix.jobs.push_back({.gpus = placed.back()->gpus(), .alone = single.run(1).front().front()});
    together.add(job.name, *placed.back());
  }
  std::vector<std::vector<SimTime>> times = together.run(steps);
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    mix.jobs[index].together = std::move(times[index]);
  }
  mix.time = together.time();
  mix.link_use = together.link_use();
  mix.network = together.stats();
  mix.extras = together.extras();
  return mix;
}

}  // namespace trainyard
