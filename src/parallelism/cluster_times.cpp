// SPDX-License-Identifier: Apache-2.0
#include "parallelism/cluster_times.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/run.h"
#include "nccl/choice.h"
#include "nccl/init.h"
#include "nccl/job_nodes.h"
#include "nccl/timing.h"
#include "network/transfers.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Servers have numbers from zero on; a joining switch stands behind them by its own.
std::vector<int> domains_of(const Cluster& cluster, const std::vector<int>& servers) {
  const Topology& topology = cluster.topology;
  std::vector<int> domains = servers;
  for (std::size_t rank = 0; rank < domains.size(); ++rank) {
    for (const LinkId link : topology.links_from(cluster.gpus[rank])) {
      const NodeId peer = topology.link(link).target;
      if (topology.node(peer).kind == NodeKind::NvSwitch && !topology.node(peer).server) {
        domains[rank] = static_cast<int>(topology.server_count() + peer.value());
      }
    }
  }
  return domains;
}

SimTime ended(const nccl::Timing& timing) {
  if (timing.engine && timing.engine->complaint) {
    throw ConfigError("step: a collective never ends: " + *timing.engine->complaint);
  }
  return timing.time;
}

}  // namespace

std::vector<int> servers_of_gpus(const Cluster& cluster) {
  std::vector<int> servers;
  for (const NodeId gpu : cluster.gpus) {
    const std::optional<ServerId> server = cluster.topology.node(gpu).server;
    CHECK(server.has_value(), "every GPU of a cluster stands in a server");
    servers.push_back(static_cast<int>(server->value()));
  }
  return servers;
}

ClusterTimes::ClusterTimes(const Cluster& cluster, std::optional<Nccl> runtime, Fidelity fidelity)
    : whole_(cluster),
      group_(cluster),
      runtime_(runtime),
      fidelity_(fidelity),
      server_of_rank_(servers_of_gpus(cluster)),
      domain_of_rank_(domains_of(cluster, server_of_rank_)) {}

const nccl::Communicator& ClusterTimes::communicator(const std::vector<int>& ranks) {
  const auto found = communicators_.find(ranks);
  if (found != communicators_.end()) {
    return found->second;
  }
  const nccl::JobNodes nodes = nccl::job_nodes(group_, runtime_->catalogue, nccl::Domains::Joined);
  return communicators_.emplace(ranks, nccl::make_communicator(nodes, {}).communicator)
      .first->second;
}

SimTime ClusterTimes::with_nccl(Operation operation, const std::vector<int>& ranks, Bytes size) {
  const nccl::InitOptions options;
  const nccl::Communicator& communicator = this->communicator(ranks);
  std::optional<nccl::EngineSettings> engine;
  if (runtime_->engine) {
    engine = nccl::EngineSettings{.fidelity = *runtime_->engine};
  }
  nccl::Timer timer(group_, communicator, runtime_->profile, options.environment, {}, engine);
  if (const auto& basis = runtime_->profile.basis) {
    if (const auto reason = basis->beyond(timer.machine(), operation, communicator.ranks, size)) {
      beyond_profile_.insert(*reason);
    }
  }
  const std::optional<nccl::Function> function = nccl::function_of(operation);
  if (!function) {
    return ended(timer.point_to_point(operation, size));
  }
  const nccl::CallPlan plan =
      nccl::plan_call(communicator, options.environment, *function,
                      nccl::call_bytes(*function, size, communicator.ranks));
  return ended(timer.collective(plan));
}

SimTime ClusterTimes::plain(Operation operation, Bytes size) const {
  const bool exchanges = operation == Operation::AllToAll || operation == Operation::SendReceive;
  const Algorithm algorithm = exchanges ? Algorithm::Direct : Algorithm::Ring;
  const CollectiveResult result = run_collective(
      group_,
      {.operation = operation, .algorithm = algorithm, .size = size, .fidelity = fidelity_});
  if (result.complaint) {
    throw ConfigError("step: a collective never ends: " + *result.complaint);
  }
  return result.time;
}

SimTime ClusterTimes::collective(Operation operation, const std::vector<int>& ranks, Bytes size) {
  CHECK(ranks.size() > 1, "a collective has at least two ranks");
  ++calls_;
  auto key = std::make_tuple(operation, ranks, size);
  const auto found = collectives_.find(key);
  if (found != collectives_.end()) {
    return found->second;
  }
  keep_ranks(whole_, ranks, group_);
  const Bytes aligned = aligned_size(operation, size, static_cast<int>(ranks.size()));
  const SimTime time = aligned.count() == 0 ? SimTime()
                       : runtime_           ? with_nccl(operation, ranks, aligned)
                                            : plain(operation, aligned);
  collectives_.emplace(std::move(key), time);
  return time;
}

SimTime ClusterTimes::transfer(int from, int to, Bytes size) {
  ++calls_;
  const auto key = std::make_tuple(from, to, size);
  const auto found = transfers_.find(key);
  if (found != transfers_.end()) {
    return found->second;
  }
  const std::array<Transfer, 1> one{Transfer{.source = whole_.gpus[static_cast<std::size_t>(from)],
                                             .target = whole_.gpus[static_cast<std::size_t>(to)]}};
  const TransferTimes run = time_transfers(whole_, one, {.size = size, .fidelity = fidelity_});
  CHECK(!run.complaint, "a transfer that is alone did not end");
  const SimTime time = run.times.front();
  transfers_.emplace(key, time);
  return time;
}

}  // namespace trainyard
