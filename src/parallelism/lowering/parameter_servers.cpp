// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/parameter_servers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "parallelism/graph/graph_blame.h"
#include "parallelism/graph/graph_network.h"
#include "parallelism/lowering/lowered_rank.h"
#include "parallelism/lowering/lowered_units.h"
#include "parallelism/memory/offload.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/walk/step_traffic.h"
#include "sim/config_error.h"
#include "sim/simulator.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

// Gradients that are pushed together, in the order in which a backward pass makes them.
struct ServerBucket {
  std::vector<ModelUnit> units;
  std::int64_t shard = 0;  // Parameters of one server, rounded up.
};

// Messages each take memory until the end of the run.
void check_size(const ServerGraph& lowered) {
  constexpr std::int64_t kMaxMessages = 2'000'000;
  const std::int64_t messages = std::int64_t{2} * lowered.workers * lowered.servers *
                                lowered.steps * static_cast<std::int64_t>(lowered.buckets);
  if (messages > kMaxMessages) {
    throw ConfigError(fmt::format(
        "parameter servers: expected at most {} messages, found {} of {} workers, {} servers, {} "
        "buckets and {} steps: fewer of plan.servers.steps make fewer",
        kMaxMessages, messages, lowered.workers, lowered.servers, lowered.buckets, lowered.steps));
  }
}

class ServerLowering {
 public:
  ServerLowering(const StepJob& job, Bandwidth memory, ServerGraph& result)
      : job_(job),
        servers_(*job.plan.servers),
        memory_(memory),
        result_(result),
        graph_(result.graph),
        communicators_(job.plan, job.server_of_rank, job.server_of_rank, graph_),
        units_(job, graph_) {
    list_buckets();
    result.buckets = buckets_.size();
    check_size(result);
    result.turns.assign(as_index(result.servers) * buckets_.size() * as_index(result.workers) *
                            as_index(result.steps),
                        {});
  }

  void add_worker(int worker);
  void add_server(int server);

 private:
  void list_buckets();
  void add_step(LoweredRank& rank, int step);
  void push(LoweredRank& rank, const ServerBucket& bucket);
  // Weights of a bucket, from all servers.
  void pull(LoweredRank& rank, const ServerBucket& bucket);
  void add_turns(LoweredRank& rank, int server, std::size_t bucket, int step);
  [[nodiscard]] int rank_of_server(int server) const { return result_.workers + server; }
  [[nodiscard]] GraphMessage gradients(int peer, const ServerBucket& bucket) const {
    return {.peer = peer, .size = Bytes(bucket.shard) * gradient_bytes(job_.plan, job_.software)};
  }
  [[nodiscard]] GraphMessage weights(int peer, const ServerBucket& bucket) const {
    return {.peer = peer, .size = Bytes(bucket.shard) * job_.plan.element_bytes};
  }

  const StepJob& job_;
  const ParameterServers& servers_;
  Bandwidth memory_;
  ServerGraph& result_;
  OperationGraph& graph_;
  PlanCommunicators communicators_;
  StepUnits units_;
  std::vector<ModelUnit> forward_;
  std::vector<ServerBucket> buckets_;
};

void ServerLowering::list_buckets() {
  const PipelineStage& stage = units_.stage_of(0, 0);
  forward_ = units_.units_of(stage);
  std::int64_t parameters = 0;
  ServerBucket bucket;
  for (auto unit = forward_.rbegin(); unit != forward_.rend(); ++unit) {
    parameters += units_.gradients_of(stage, *unit).total();
    bucket.units.push_back(*unit);
    if (parameters >= bucket_parameters(job_.plan, job_.software) ||
        std::next(unit) == forward_.rend()) {
      bucket.shard = (parameters + servers_.count - 1) / servers_.count;
      buckets_.push_back(std::move(bucket));
      bucket = {};
      parameters = 0;
    }
  }
}

void ServerLowering::push(LoweredRank& rank, const ServerBucket& bucket) {
  for (int server = 0; server < servers_.count; ++server) {
    const OperationId sent =
        graph_.add_send(rank.stream(fmt::format("to server {}", server)), "gradients",
                        StepPart::Data, gradients(rank_of_server(server), bucket));
    rank.link(rank.front(), sent);
  }
}

void ServerLowering::pull(LoweredRank& rank, const ServerBucket& bucket) {
  for (int server = 0; server < servers_.count; ++server) {
    rank.require(graph_.add_receive(rank.stream(fmt::format("from server {}", server)), "weights",
                                    StepPart::Data, weights(rank_of_server(server), bucket)));
  }
}

void ServerLowering::add_step(LoweredRank& rank, int step) {
  const std::int64_t micro_batches = job_.plan.micro_batches();
  for (std::int64_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
    // Weights come in the order in which gradients went, those of the first layers last.
    if (micro_batch == 0 && step > 0) {
      for (const ServerBucket& bucket : buckets_) {
        pull(rank, bucket);
      }
    }
    for (const ModelUnit& unit : forward_) {
      rank.unit(units_.unit(unit, PassKind::Forward));
    }
    for (const ServerBucket& bucket : buckets_) {
      for (const ModelUnit& unit : bucket.units) {
        rank.unit(units_.unit(unit, PassKind::Backward));
      }
      if (micro_batch + 1 == micro_batches && job_.overlap.data) {
        push(rank, bucket);
      }
    }
  }
  if (!job_.overlap.data) {
    for (const ServerBucket& bucket : buckets_) {
      push(rank, bucket);
    }
  }
}

void ServerLowering::add_worker(int worker) {
  LoweredRank rank(worker, graph_, communicators_);
  for (int step = 0; step < servers_.steps; ++step) {
    add_step(rank, step);
  }
  for (const ServerBucket& bucket : buckets_) {
    pull(rank, bucket);  // The result of the last step.
  }
}

void ServerLowering::add_server(int server) {
  LoweredRank rank(rank_of_server(server), graph_, communicators_);
  for (int step = 0; step < servers_.steps; ++step) {
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      add_turns(rank, server, bucket, step);
    }
  }
}

void ServerLowering::add_turns(LoweredRank& rank, int server, std::size_t bucket, int step) {
  const ServerBucket& of = buckets_[bucket];
  const StreamId cpu = rank.stream("cpu", StreamOrder::Ready);
  const SimTime time = host_work_time(of.shard, job_.software.optimizer_bytes, memory_);
  for (int worker = 0; worker < result_.workers; ++worker) {
    const OperationId received =
        graph_.add_receive(rank.stream(fmt::format("from worker {}", worker)), "gradients",
                           StepPart::Data, gradients(worker, of));
    ServerTurn& turn = result_.turns[result_.at(server, bucket, worker, step)];
    turn.update = graph_.add_host(cpu, "update", StepPart::Optimizer, time);
    graph_.add_dependency(received, turn.update);
  }
  // All workers have done the step that has to be in what is sent now.
  std::optional<OperationId> complete;
  if (servers_.bound && step >= *servers_.bound) {
    complete = graph_.add_host(rank.stream("clock", StreamOrder::Free), "complete",
                               StepPart::Optimizer, {});
    for (int worker = 0; worker < result_.workers; ++worker) {
      const std::size_t past = result_.at(server, bucket, worker, step - *servers_.bound);
      graph_.add_dependency(result_.turns[past].update, *complete);
    }
  }
  for (int worker = 0; worker < result_.workers; ++worker) {
    ServerTurn& turn = result_.turns[result_.at(server, bucket, worker, step)];
    turn.pull = graph_.add_send(rank.stream(fmt::format("to worker {}", worker)), "weights",
                                StepPart::Data, weights(worker, of));
    graph_.add_dependency(turn.update, turn.pull);
    if (complete) {
      graph_.add_dependency(*complete, turn.pull);
    }
  }
}

void check_servers(const StepJob& job) {
  const ParallelPlan& plan = job.plan;
  const int others = plan.tensor * plan.context * plan.pipeline * plan.expert;
  if (others != 1 || plan.zero_stage != 0 || plan.offload.any()) {
    throw ConfigError(fmt::format(
        "parameter servers: expected data ranks alone, without ZeRO and offload, found tensor {}, "
        "context {}, pipeline {}, expert {}, zero_stage {}{}",
        plan.tensor, plan.context, plan.pipeline, plan.expert, plan.zero_stage,
        plan.offload.any() ? " and offload" : ""));
  }
}

StepTime step_of(const StepJob& job, const ServerGraph& lowered, const GraphResult& result,
                 const GraphRunOptions& options, bool has_jitter) {
  const std::vector<StepParts> ranks = blame_of(lowered.graph, result, options);
  const std::size_t worker = busiest_of(std::span(ranks).first(as_index(lowered.workers)));
  StepTime step;
  step.parts = shared_out(ranks[worker], SimTime(result.finish.picoseconds() / lowered.steps));
  complete(step, job.software.fixed, job.server_of_rank, has_jitter);
  return step;
}

}  // namespace

std::size_t ServerGraph::at(int server, std::size_t bucket, int worker, int step) const {
  const std::size_t row = as_index(server) * buckets + bucket;
  return (row * as_index(workers) + as_index(worker)) * as_index(steps) + as_index(step);
}

ServerGraph lower_servers(const StepJob& job, Bandwidth memory) {
  check_servers(job);
  const ParameterServers& servers = *job.plan.servers;
  const int workers = job.plan.ranks();
  ServerGraph result{.graph = OperationGraph(workers + servers.count),
                     .workers = workers,
                     .servers = servers.count,
                     .steps = servers.steps,
                     .buckets = 0,
                     .turns = {}};
  ServerLowering lowering(job, memory, result);
  for (int worker = 0; worker < workers; ++worker) {
    lowering.add_worker(worker);
  }
  for (int server = 0; server < servers.count; ++server) {
    lowering.add_server(server);
  }
  return result;
}

Staleness staleness_of(const ServerGraph& lowered, const GraphResult& result) {
  // Steps of a worker that are in a bucket at that time.
  const auto steps_in = [&](int server, std::size_t bucket, int worker, SimTime time) {
    const std::span turns =
        std::span(lowered.turns)
            .subspan(lowered.at(server, bucket, worker, 0), as_index(lowered.steps));
    const auto later = std::partition_point(turns.begin(), turns.end(), [&](const auto& turn) {
      return result.timings[turn.update.value()].end <= time;
    });
    return static_cast<int>(later - turns.begin());
  };
  Staleness staleness;
  std::int64_t sum = 0;
  std::int64_t count = 0;
  const auto add = [&](int server, std::size_t bucket, int worker, int step) {
    const std::size_t turn = lowered.at(server, bucket, worker, step);
    const SimTime sent = result.timings[lowered.turns[turn].pull.value()].start;
    int min = step + 1;
    for (int other = 0; other < lowered.workers; ++other) {
      min = std::min(min, steps_in(server, bucket, other, sent));
    }
    staleness.max = std::max(staleness.max, step + 1 - min);
    sum += step + 1 - min;
    ++count;
  };
  for (int server = 0; server < lowered.servers; ++server) {
    for (std::size_t bucket = 0; bucket < lowered.buckets; ++bucket) {
      for (int worker = 0; worker < lowered.workers; ++worker) {
        for (int step = 0; step < lowered.steps; ++step) {
          add(server, bucket, worker, step);
        }
      }
    }
  }
  staleness.mean = static_cast<double>(sum) / static_cast<double>(count);
  return staleness;
}

ServerPlaces server_places(const Cluster& cluster, const ParameterServers& servers) {
  const auto hosts = static_cast<int>(cluster.server_gpus.size());
  const int working = servers.on_workers ? hosts : hosts - servers.count;
  if (working < 1) {
    throw ConfigError(fmt::format(
        "parameter servers: expected more hosts than servers, each on one of its own, found {} "
        "and {}; plan.servers.place: workers shares them",
        hosts, servers.count));
  }
  const Routing routing(cluster.topology, cluster.routing);
  std::vector<int> first(1);  // GPU of each host.
  for (const int gpus : cluster.server_gpus) {
    first.push_back(first.back() + gpus);
  }
  ServerPlaces places{.workers = cluster, .servers = {}};
  for (int server = 0; server < servers.count; ++server) {
    const int host = servers.on_workers ? server % hosts : working + server;
    const auto gpu = static_cast<std::size_t>(first[as_index(host)]);
    const std::optional<NodeId> memory = routing.host_memory(cluster.gpus[gpu]);
    if (!memory) {
      throw ConfigError(fmt::format("{}: expected a host memory that {} reaches, found none",
                                    cluster.name, cluster.topology.node(cluster.gpus[gpu]).name));
    }
    places.servers.push_back(*memory);
  }
  if (!servers.on_workers) {
    std::vector<int> ranks(static_cast<std::size_t>(first[as_index(working)]));
    std::iota(ranks.begin(), ranks.end(), 0);
    keep_ranks(cluster.gpus, std::move(ranks), places.workers);
  }
  return places;
}

ParameterServerRun run_servers(const StepJob& job, const ServerPlaces& places, Fidelity fidelity,
                               const ComputeJitter& jitter) {
  const ServerGraph lowered =
      lower_servers(job, min_memory(places.workers.topology, places.servers));
  check(lowered.graph, "parameter servers");
  Cluster all = places.workers;
  all.gpus.insert(all.gpus.end(), places.servers.begin(), places.servers.end());
  Simulator simulator;
  SharedNetwork network(simulator, all, fidelity);
  NetworkTraffic traffic(simulator, all, network);
  const GraphRunOptions options = with_jitter({}, jitter, lowered.graph);
  const GraphResult result = run_graph(simulator, lowered.graph, traffic, options);
  check_finished(result, "parameter servers: expected steps that end");
  return {.workers = lowered.workers,
          .servers = lowered.servers,
          .steps = lowered.steps,
          .finish = result.finish,
          .staleness = staleness_of(lowered, result),
          .step = step_of(job, lowered, result, options, jitter.has_any()),
          .link_use = network.engine->link_use()};
}

}  // namespace trainyard
