// SPDX-License-Identifier: Apache-2.0
#include "parallelism/cluster_times.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "collectives/algorithms.h"
#include "collectives/executor.h"
#include "collectives/placement.h"
#include "collectives/run.h"
#include "nccl/choice.h"
#include "nccl/init.h"
#include "nccl/job_nodes.h"
#include "nccl/timing.h"
#include "network/transfers.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/switch_graph.h"

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

bool exchanges(Operation operation) {
  return operation == Operation::AllToAll || operation == Operation::SendReceive;
}

Algorithm plain_algorithm(Operation operation) {
  return exchanges(operation) ? Algorithm::Direct : Algorithm::Ring;
}

// All connections of the schedule, as one load: what a rank sends to each is equally long.
Load plain_load(const Cluster& cluster, Operation operation, Bytes size, const Routing& routing,
                ConnectionLoads& connections) {
  const Algorithm algorithm = plain_algorithm(operation);
  const Placement placement = place(cluster, routing, algorithm, std::nullopt);
  const auto schedule =
      make_schedule(algorithm, operation,
                    {.layout = placement.layout,
                     .root = RankId(),
                     .pieces = default_pieces(algorithm, operation, placement.layout, size),
                     .trees = placement.trees,
                     .dimensions = placement.dimensions,
                     .rotate_dimensions = placement.rotate_dimensions});
  Load load;
  ScheduleConnections specs(*schedule, placement.nodes);
  for (std::uint32_t index = 0; index < schedule->shape().connections; ++index) {
    const ConnectionSpec spec = specs.next();
    if (!connections.add(spec, 1.0, load)) {
      throw_unreachable(cluster.topology, spec.source, spec.target);
    }
  }
  merge(load);
  return load;
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

void ClusterTimes::use_plan(const ParallelPlan& plan) {
  CHECK(plan.ranks() == static_cast<int>(whole_.gpus.size()), "a rank for each GPU");
  const auto known = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const PlanAnswers& one) { return one.plan == plan; });
  if (known != plans_.end()) {
    asked_ = &*known;
    return;
  }
  // Fits ask for the same plans over and over, searches for thousands once each.
  constexpr std::size_t kMostRanks = std::size_t{1} << 20;
  if (plans_.size() * whole_.gpus.size() >= kMostRanks) {
    plans_.pop_front();
  }
  asked_ = &plans_.emplace_back();
  asked_->plan = plan;
  asked_->sisters.emplace(plan, domain_of_rank_);
}

// Of each rank the kind of its server, which of the group's servers and domains it is in, and its
// place in the server.
std::vector<int> ClusterTimes::shape_of_group() {
  if (!kinds_) {
    kinds_.emplace(whole_, SwitchGraph(whole_.topology));
  }
  std::vector<int> shape;
  std::map<int, int> domains;
  std::map<ServerId, int> servers;
  for (const NodeId gpu : group_.gpus) {
    const ServerId server = *group_.topology.node(gpu).server;
    const std::span<const NodeId> nodes = kinds_->nodes_of(server);
    const auto rank = std::lower_bound(whole_.gpus.begin(), whole_.gpus.end(), gpu);
    const int domain = domain_of_rank_[static_cast<std::size_t>(rank - whole_.gpus.begin())];
    const auto count = [](const auto& map) { return static_cast<int>(map.size()); };
    shape.push_back(static_cast<int>(kinds_->kind_of(server)));
    shape.push_back(servers.try_emplace(server, count(servers)).first->second);
    shape.push_back(domains.try_emplace(domain, count(domains)).first->second);
    shape.push_back(
        static_cast<int>(std::lower_bound(nodes.begin(), nodes.end(), gpu) - nodes.begin()));
  }
  return shape;
}

const nccl::Communicator& ClusterTimes::communicator() {
  std::vector<int> shape = shape_of_group();
  const auto found = communicators_.find(shape);
  if (found != communicators_.end()) {
    return found->second;
  }
  const nccl::JobNodes nodes = nccl::job_nodes(group_, runtime_->catalogue, nccl::Domains::Joined);
  return communicators_
      .emplace(std::move(shape), nccl::make_communicator(nodes, init_options()).communicator)
      .first->second;
}

// Nothing for what is made of sends and receives.
std::optional<nccl::CallPlan> ClusterTimes::call_plan(const nccl::Communicator& communicator,
                                                      Operation operation, Bytes size) const {
  const nccl::InitOptions options = init_options();
  const std::optional<nccl::Function> function = nccl::function_of(operation);
  if (!function) {
    return std::nullopt;
  }
  return nccl::plan_call(communicator, options.environment, *function,
                         nccl::call_bytes(*function, size, communicator.ranks));
}

ClusterTimes::Use ClusterTimes::use_of(Operation operation, Bytes size) {
  if (!runtime_) {
    return {exchanges(operation) ? static_cast<int>(operation) : -1, 0};
  }
  const std::optional<nccl::CallPlan> plan = call_plan(communicator(), operation, size);
  if (!plan) {
    return {static_cast<int>(operation), -1};
  }
  const bool is_whole =
      plan->algorithm == nccl::Algorithm::Ring || plan->algorithm == nccl::Algorithm::Tree;
  return {static_cast<int>(plan->algorithm), is_whole ? 0 : plan->channels};
}

// Loads do not depend on what was asked before.
void ClusterTimes::restart_loads() {
  if (!connections_) {
    routing_.emplace(whole_.topology, whole_.routing);
    connections_.emplace(*routing_);
  }
  connections_->restart();
}

std::vector<Load> ClusterTimes::loads(Operation operation, Bytes size) {
  if (!runtime_) {
    return {plain_load(group_, operation, size, *routing_, *connections_)};
  }
  const nccl::InitOptions options = init_options();
  const nccl::Communicator& communicator = this->communicator();
  nccl::Timer timer(group_, communicator, runtime_->profile, options.environment, {}, {},
                    &*routing_);
  const std::optional<nccl::CallPlan> plan = call_plan(communicator, operation, size);
  return plan ? timer.loads(*plan, *connections_) : timer.loads(operation, *connections_);
}

SimTime ClusterTimes::with_nccl(Operation operation, Bytes size, const Cluster& cluster,
                                const GroupShare* share) {
  const nccl::InitOptions options = init_options();
  const nccl::Communicator& communicator = this->communicator();
  std::optional<nccl::EngineSettings> engine;
  if (runtime_->engine) {
    engine = nccl::EngineSettings{.fidelity = *runtime_->engine};
  }
  nccl::Timer timer(cluster, communicator, runtime_->profile, options.environment, {}, engine);
  if (share != nullptr && !engine) {
    timer.limit({.channels = share->limits, .share = share->share});
  }
  if (const auto& basis = runtime_->profile.basis) {
    if (const auto reason = basis->beyond(timer.machine(), operation, communicator.ranks, size)) {
      beyond_profile_.insert(*reason);
    }
  }
  const std::optional<nccl::CallPlan> plan = call_plan(communicator, operation, size);
  return ended(plan ? timer.collective(*plan) : timer.point_to_point(operation, size));
}

SimTime ClusterTimes::plain(Operation operation, Bytes size, const Cluster& cluster) const {
  const CollectiveResult result = run_collective(cluster, {.operation = operation,
                                                           .algorithm = plain_algorithm(operation),
                                                           .size = size,
                                                           .fidelity = fidelity_});
  if (result.complaint) {
    throw ConfigError("step: a collective never ends: " + *result.complaint);
  }
  return result.time;
}

std::optional<std::size_t> ClusterTimes::add_share(const Groups& groups,
                                                   const std::vector<std::vector<Load>>& loads,
                                                   const std::vector<int>& asked,
                                                   SeesFabric sees_fabric) {
  const auto place =
      static_cast<std::size_t>(std::find(groups.begin(), groups.end(), asked) - groups.begin());
  CHECK(place < groups.size(), "a group is among its sisters");
  GroupShare share = group_share(whole_.topology, loads, place, sees_fabric);
  if (!share.is_limited && share.group == place) {
    return std::nullopt;
  }
  const std::size_t group = share.group;
  shares_.push_back({.left = std::move(share), .ranks = groups[group]});
  return shares_.size() - 1;
}

std::optional<std::size_t> ClusterTimes::share_of(Operation operation, const Groups& groups,
                                                  const std::vector<int>& asked, Bytes size) {
  keep_ranks(whole_, asked, group_);
  const Use use = use_of(operation, size);
  auto key = std::make_tuple(use, groups, asked);
  const auto known = known_shares_.find(key);
  if (known != known_shares_.end()) {
    return known->second;
  }
  const auto is_empty = [](const std::vector<Load>& loads) {
    return std::all_of(loads.begin(), loads.end(), [](const Load& load) { return load.empty(); });
  };
  std::optional<std::size_t> share;
  restart_loads();
  if (!is_empty(loads(operation, size))) {
    restart_loads();
    std::vector<std::vector<Load>> all;
    for (const std::vector<int>& ranks : groups) {
      keep_ranks(whole_, ranks, group_);
      all.push_back(loads(operation, size));
    }
    // Rings and trees of the event model know the way of each connection, the others only NICs; an
    // engine knows all.
    const bool is_blind = runtime_ && !runtime_->engine &&
                          (spreads(whole_.routing.policy) ||
                           (use.first != static_cast<int>(nccl::Algorithm::Ring) &&
                            use.first != static_cast<int>(nccl::Algorithm::Tree)) ||
                           !nccl::function_of(operation));
    share = add_share(groups, all, asked, is_blind ? SeesFabric::No : SeesFabric::Yes);
  }
  known_shares_.emplace(std::move(key), share);
  return share;
}

std::optional<std::size_t> ClusterTimes::share_of_message(const Groups& messages,
                                                          const std::vector<int>& asked) {
  auto key = std::make_pair(messages, asked);
  const auto known = message_shares_.find(key);
  if (known != message_shares_.end()) {
    return known->second;
  }
  restart_loads();
  std::vector<std::vector<Load>> all;
  for (const std::vector<int>& ends : messages) {
    const auto gpu = [&](std::size_t end) {
      return whole_.gpus[static_cast<std::size_t>(ends[end])];
    };
    Load load;
    if (!connections_->add({.source = gpu(0), .target = gpu(1)}, 1.0, load)) {
      throw_unreachable(whole_.topology, gpu(0), gpu(1));
    }
    merge(load);
    all.push_back({std::move(load)});
  }
  const std::optional<std::size_t> share = add_share(messages, all, asked, SeesFabric::Yes);
  message_shares_.emplace(std::move(key), share);
  return share;
}

const ClusterTimes::Share* ClusterTimes::share_at(std::optional<std::size_t> index) {
  if (!index) {
    return nullptr;
  }
  asked_->least_share = std::min(asked_->least_share, shares_[*index].left.share);
  return &shares_[*index];
}

Cluster ClusterTimes::with_links_left(const Cluster& cluster, const GroupShare& share) const {
  Cluster changed = cluster;
  changed.topology = whole_.topology.with_bandwidths(share.left);
  return changed;
}

SimTime ClusterTimes::simulated_once(Operation operation, const std::vector<int>& ranks, Bytes size,
                                     std::optional<std::size_t> share) {
  const auto [entry, fresh] = collectives_.try_emplace({operation, ranks, size, share});
  if (fresh) {
    keep_ranks(whole_, ranks, group_);
    const Bytes aligned = aligned_size(operation, size, static_cast<int>(ranks.size()));
    const GroupShare* const left = share ? &shares_[*share].left : nullptr;
    std::optional<Cluster> changed;
    if (left != nullptr && left->is_limited && (!runtime_ || runtime_->engine)) {
      changed.emplace(with_links_left(group_, *left));
    }
    const Cluster& cluster = changed ? *changed : group_;
    entry->second = runtime_ ? with_nccl(operation, aligned, cluster, left)
                             : plain(operation, aligned, cluster);
  }
  return entry->second;
}

SimTime ClusterTimes::collective(Operation operation, const std::vector<int>& ranks, Bytes size) {
  CHECK(ranks.size() > 1, "a collective has at least two ranks");
  ++calls_;
  const auto asked = std::make_tuple(operation, ranks, size);
  const auto answer = asked_->collectives.find(asked);
  if (answer != asked_->collectives.end()) {
    return answer->second;
  }
  const Bytes aligned = aligned_size(operation, size, static_cast<int>(ranks.size()));
  std::optional<std::size_t> index;
  if (asked_->sisters && aligned.count() > 0) {
    const Groups& groups = asked_->sisters->of(ranks);
    if (groups.size() > 1) {
      std::vector<int> rising = ranks;
      std::sort(rising.begin(), rising.end());
      index = share_of(operation, groups, rising, aligned);
    }
  }
  SimTime time;
  if (aligned.count() > 0) {
    // A group that is slower than this one by rates alone may yet be faster: of other ranks.
    time = simulated_once(operation, ranks, size, std::nullopt);
    if (const Share* const share = share_at(index)) {
      time = std::max(time, simulated_once(operation, share->ranks, size, index));
    }
  }
  asked_->collectives.emplace(asked, time);
  return time;
}

SimTime ClusterTimes::transfer(int from, int to, Bytes size) {
  ++calls_;
  const auto asked = std::make_tuple(from, to, size);
  const auto answer = asked_->messages.find(asked);
  if (answer != asked_->messages.end()) {
    return answer->second;
  }
  std::optional<std::size_t> index;
  if (asked_->sisters) {
    const Groups& messages = asked_->sisters->of_message(from, to);
    if (messages.size() > 1) {
      index = share_of_message(messages, {from, to});
    }
  }
  SimTime time = transferred_once(from, to, size, std::nullopt);
  if (const Share* const share = share_at(index)) {  // As for collectives.
    time = std::max(time, transferred_once(share->ranks[0], share->ranks[1], size, index));
  }
  asked_->messages.emplace(asked, time);
  return time;
}

SimTime ClusterTimes::transferred_once(int from, int to, Bytes size,
                                       std::optional<std::size_t> share) {
  const auto [entry, fresh] = transfers_.try_emplace({from, to, size, share});
  if (fresh) {
    const std::array<Transfer, 1> one{
        Transfer{.source = whole_.gpus[static_cast<std::size_t>(from)],
                 .target = whole_.gpus[static_cast<std::size_t>(to)]}};
    std::optional<Cluster> changed;
    if (share && shares_[*share].left.is_limited) {
      changed.emplace(with_links_left(whole_, shares_[*share].left));
    }
    const TransferTimes run =
        time_transfers(changed ? *changed : whole_, one, {.size = size, .fidelity = fidelity_});
    CHECK(!run.complaint, "a transfer that is alone did not end");
    entry->second = run.times.front();
  }
  return entry->second;
}

}  // namespace trainyard
