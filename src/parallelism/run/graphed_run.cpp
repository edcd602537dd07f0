// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/graphed_run.h"

#include <spdlog/fmt/fmt.h>

#include <span>
#include <utility>

#include "network/engines/make_network.h"
#include "parallelism/graph/graph_blame.h"
#include "parallelism/graph/graph_network.h"
#include "sim/config_error.h"

namespace trainyard {

namespace {

GraphRunOptions noisy_options(const StepTables& tables, const OperationGraph& graph) {
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

StepTime step_of(const LoweredRun& run, SimTime fixed, std::span<const int> servers,
                 bool has_jitter) {
  StepTime step;
  step.parts = run.ranks[run.busiest];
  step.critical_rank = static_cast<int>(run.busiest);
  complete(step, fixed, servers, has_jitter);
  return step;
}

}  // namespace

const GpuRates& no_rates() {
  static const GpuRates none;
  return none;
}

GraphOnCluster::GraphOnCluster(const Cluster& cluster, const StepTables& tables)
    : cluster_(cluster), tables_(tables) {
  std::optional<ClusterTimes::Nccl> nccl;
  if (tables.nccl != nullptr) {
    nccl.emplace(ClusterTimes::Nccl{.profile = *tables.nccl,
                                    .engine = tables.engine,
                                    .version = tables.nccl_version,
                                    .searches = tables.searches});
  }
  times_.emplace(cluster, nccl, tables.fidelity);
  times_->use_hccl(tables.hccl);
}

void GraphOnCluster::with_traffic(const std::function<void(Simulator&, GraphTraffic&)>& use) {
  Simulator simulator;
  if (!tables_.shares_network) {
    TimedTraffic traffic(*times_);
    use(simulator, traffic);
    return;
  }
  SharedNetwork network(simulator, cluster_, tables_.fidelity, tables_.packets, tables_.extras);
  NetworkTraffic traffic(simulator, cluster_, network);
  use(simulator, traffic);
  if (tables_.fidelity == Fidelity::Packet) {
    packets_ = network.engine->stats().packets;
  }
  extras_ = extra_results(*network.engine);
}

GraphedRun GraphOnCluster::run(const OperationGraph& graph, const GraphRunOptions& options,
                               std::string_view name) {
  GraphedRun run;
  with_traffic([&](Simulator& simulator, GraphTraffic& traffic) {
    run.result = run_graph(simulator, graph, traffic, options);
  });
  check_finished(run.result, fmt::format("{}: expected operations that all end", name));
  run.ranks = blame_of(graph, run.result, options);
  run.busiest = busiest_of(run.ranks);
  run.calls = times_->calls();
  run.simulated = times_->simulated();
  run.packets = packets_;
  run.extras = extras_;
  run.beyond_profile.assign(times_->beyond_profile().begin(), times_->beyond_profile().end());
  return run;
}

void run_lowered(const Cluster& cluster, const StepTables& tables, SimTime fixed,
                 std::string_view name, LoweredRun& run) {
  check(run.graph, name);
  const std::vector<int> servers = servers_of_gpus(cluster);
  GraphOnCluster runner(cluster, tables);
  GraphedRun& of_graph = run;
  of_graph = runner.run(run.graph, {}, name);
  const bool has_jitter = tables.jitter.has_any();
  if (tables.slow_rank || has_jitter) {
    run.usual_time = step_of(run, fixed, servers, has_jitter).time;
    of_graph = runner.run(run.graph, noisy_options(tables, run.graph), name);
  }
  run.step = step_of(run, fixed, servers, has_jitter);
}

void check_unfolded(const StepTables& tables, int ranks) {
  if (tables.shares_network && ranks > kMaxUnfoldedRanks) {
    throw ConfigError(fmt::format("--traffic shared: expected at most {} GPUs, found {}",
                                  kMaxUnfoldedRanks, ranks));
  }
}

}  // namespace trainyard
