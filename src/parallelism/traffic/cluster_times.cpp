// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/cluster_times.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "collectives/algorithms/algorithms.h"
#include "collectives/hccl/hccl_run.h"
#include "collectives/placement/placement.h"
#include "collectives/run/executor.h"
#include "collectives/run/run.h"
#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "network/traffic/transfers.h"
#include "parallelism/traffic/gpu_domains.h"
#include "parallelism/traffic/load_signature.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

void check_ended(const std::optional<std::string>& complaint) {
  if (complaint) {
    throw ConfigError("step: a collective never ends: " + *complaint);
  }
}

// All connections of the schedule, as one load: what a rank sends to each is equally long.
Load plain_load(const Cluster& cluster, Operation operation, Bytes size, const Routing& routing,
                ConnectionLoads& connections) {
  const Algorithm algorithm = default_algorithm(operation);
  Placement placement = place(cluster, routing, algorithm, std::nullopt);
  ScheduleOptions& options = placement.options;
  options.pieces = default_pieces(algorithm, operation, options.layout, size);
  const auto schedule = make_schedule(algorithm, operation, options);
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

// Algorithms whose channels are loads that go at one rate whatever they carry.
bool is_whole(nccl::Algorithm algorithm) {
  return algorithm == nccl::Algorithm::Ring || algorithm == nccl::Algorithm::Tree;
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
      domain_of_rank_(domains_of_gpus(cluster)) {}

void ClusterTimes::use_plan(const ParallelPlan& plan) {
  CHECK(plan.ranks() == static_cast<int>(whole_.gpus.size()), "a rank for each GPU");
  const auto known = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const PlanAnswers& one) { return one.plan == plan; });
  if (known != plans_.end()) {
    asked_ = &*known;
    return;
  }
  // Fits ask for the same plans over and over, searches for thousands once each.
  constexpr std::size_t kMaxRanks = std::size_t{1} << 20;
  if (plans_.size() * whole_.gpus.size() >= kMaxRanks) {
    plans_.pop_front();
  }
  asked_ = &plans_.emplace_back();
  asked_->plan = plan;
  asked_->concurrent.emplace(plan, domain_of_rank_);
}

// Loads do not depend on what was asked before.
void ClusterTimes::restart_loads() {
  if (!connections_) {
    routing_.emplace(whole_.topology, whole_.routing);
    connections_.emplace(*routing_);
  }
  connections_->restart();
}

ClusterTimes::Shape& ClusterTimes::shape_of(const std::vector<int>& ranks) {
  if (!shapes_of_groups_) {
    restart_loads();
    shapes_of_groups_.emplace(whole_, domain_of_rank_, *routing_);
  }
  std::vector<int> described = shapes_of_groups_->shape(ranks);
  const auto found = shapes_.find(described);
  if (found != shapes_.end()) {
    return found->second;
  }
  Shape made;
  if (runtime_) {
    keep_ranks(whole_.gpus, ranks, group_);
    const nccl::JobNodes nodes = nccl::job_nodes(group_, nccl::Domains::Joined);
    nccl::SearchMemory* const searches =
        runtime_->searches != nullptr ? runtime_->searches : &own_searches_;
    made.communicator = nccl::make_communicator(nodes, init_options(), searches).communicator;
  }
  Shape& shape = shapes_.emplace(std::move(described), std::move(made)).first->second;
  shape.alike = alike(ranks, shape);
  return shape;
}

int ClusterTimes::alike(const std::vector<int>& ranks, const Shape& shape) {
  std::vector<const Shape*>& others = different_shapes_[shapes_of_groups_->joints(ranks)];
  for (const Shape* const other : others) {
    if (!runtime_ || differ_in_nics_alone(*other->communicator, *shape.communicator)) {
      return other->alike;
    }
  }
  others.push_back(&shape);
  return numbers_++;
}

// Returns nothing for what is made of sends and receives.
std::optional<nccl::CallPlan> ClusterTimes::call_plan(const nccl::Communicator& communicator,
                                                      Operation operation, Bytes size) const {
  const std::optional<nccl::Function> function = nccl::function_of(operation);
  if (!function) {
    return std::nullopt;
  }
  return nccl::plan_call(communicator, init_options().environment, *function,
                         nccl::call_bytes(*function, size, communicator.ranks));
}

ClusterTimes::Use ClusterTimes::use_of(const Shape& shape, Operation operation, Bytes size) const {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  if (!runtime_) {
    const bool exchanges = operation == Operation::AllToAll || operation == Operation::SendReceive;
    return {exchanges ? number(operation) : -1};
  }
  const std::optional<nccl::CallPlan> plan = call_plan(*shape.communicator, operation, size);
  if (!plan) {
    return {-1, number(operation)};
  }
  Use use = {number(plan->algorithm)};
  if (!is_whole(plan->algorithm)) {
    use.insert(use.end(), {number(plan->function), plan->bytes.count(), number(plan->channels)});
  }
  return use;
}

SeesFabric ClusterTimes::sees_fabric(const Shape& shape, Operation operation, Bytes size) const {
  if (!runtime_ || runtime_->engine) {
    return SeesFabric::Yes;
  }
  // Rings and trees have no limit where switches choose by themselves.
  const std::optional<nccl::CallPlan> plan = call_plan(*shape.communicator, operation, size);
  return plan && is_whole(plan->algorithm) && traits(whole_.routing.policy).spreads()
             ? SeesFabric::No
             : SeesFabric::Yes;
}

std::vector<Load> ClusterTimes::loads(const Shape& shape, Operation operation, Bytes size) {
  if (!runtime_) {
    return {plain_load(group_, operation, size, *routing_, *connections_)};
  }
  const nccl::InitOptions options = init_options();
  const nccl::Communicator& communicator = *shape.communicator;
  nccl::Timer timer(group_, communicator, runtime_->profile, options.environment, {}, {},
                    &*routing_);
  const std::optional<nccl::CallPlan> plan = call_plan(communicator, operation, size);
  return plan ? timer.loads(*plan, *connections_) : timer.loads(operation, *connections_);
}

SimTime ClusterTimes::with_nccl(const Shape& shape, Operation operation, Bytes size,
                                const Cluster& cluster, const GroupShare* share) {
  const nccl::InitOptions options = init_options();
  const nccl::Communicator& communicator = *shape.communicator;
  std::optional<nccl::EngineSettings> engine;
  if (runtime_->engine) {
    engine = nccl::EngineSettings{.fidelity = *runtime_->engine};
  }
  restart_loads();
  routing_->forget_connections();
  nccl::Timer timer(cluster, communicator, runtime_->profile, options.environment, {}, engine,
                    engine ? nullptr : &*routing_);
  if (share != nullptr && !engine) {
    timer.limit({.channels = share->limits, .share = share->share});
  }
  if (const auto& basis = runtime_->profile.basis) {
    if (const auto reason = basis->beyond(timer.machine(), operation, communicator.ranks, size)) {
      beyond_profile_.insert(*reason);
    }
  }
  const std::optional<nccl::CallPlan> plan = call_plan(communicator, operation, size);
  const nccl::Timing timing =
      plan ? timer.collective(*plan) : timer.point_to_point(operation, size);
  if (timing.engine) {
    check_ended(timing.engine->complaint);
  }
  return timing.time;
}

SimTime ClusterTimes::plain(Operation operation, Bytes size, const Cluster& cluster) const {
  if (hccl_ != nullptr) {
    const HcclMachine machine = hccl_machine(cluster);
    const HcclTiming timing =
        time_hccl(cluster, machine, choose_hccl(machine, {}, operation, size), *hccl_,
                  {.operation = operation, .size = size, .fidelity = fidelity_});
    check_ended(timing.complaint);
    return timing.time;
  }
  const CollectiveResult result =
      run_collective(cluster, {.operation = operation,
                               .algorithm = default_algorithm(operation),
                               .size = size,
                               .fidelity = fidelity_});
  check_ended(result.complaint);
  return result.time;
}

std::vector<ClusterTimes::Slowest> ClusterTimes::slowest_by_class(
    const Groups& groups, const std::vector<std::vector<Load>>& loads,
    const std::vector<std::vector<std::int64_t>>& keys, const std::vector<SeesFabric>& sees) {
  std::map<std::vector<std::int64_t>, std::size_t> numbers;
  std::vector<GroupClass> classes;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto [entry, fresh] = numbers.try_emplace(keys[group], classes.size());
    if (fresh) {
      classes.push_back({.sees_fabric = sees[group]});
    }
    classes[entry->second].groups.push_back(group);
  }
  std::vector<Slowest> slowest;
  for (GroupShare& share : group_shares(whole_.topology, loads, classes)) {
    Slowest& one =
        slowest.emplace_back(Slowest{.ranks = groups[share.group], .group = share.group});
    if (share.is_limited) {
      one.share = shares_.size();
      shares_.push_back(std::move(share));
    }
  }
  return slowest;
}

const std::vector<ClusterTimes::Slowest>& ClusterTimes::slowest_of(Operation operation,
                                                                   const Groups& groups,
                                                                   Bytes size) {
  std::vector<Shape*> shapes;
  std::vector<Use> uses;
  std::map<const Shape*, Use> use_of_shape;
  for (const std::vector<int>& ranks : groups) {
    shapes.push_back(&shape_of(ranks));
    const auto [entry, fresh] = use_of_shape.try_emplace(shapes.back());
    if (fresh) {
      entry->second = use_of(*shapes.back(), operation, size);
      uses.push_back(entry->second);
    }
  }
  auto key = std::make_pair(std::move(uses), groups);
  const auto known = known_slowest_.find(key);
  if (known != known_slowest_.end()) {
    return known->second;
  }
  restart_loads();
  std::vector<std::vector<Load>> all;
  std::vector<std::vector<std::int64_t>> keys;
  std::vector<SeesFabric> sees;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    Shape& shape = *shapes[group];
    const auto [is_empty, is_new] = shape.is_empty.try_emplace(use_of_shape[&shape], false);
    all.emplace_back();
    keys.push_back({shape.alike});
    if (is_new || !is_empty->second) {
      keep_ranks(whole_.gpus, groups[group], group_);
      all.back() = loads(shape, operation, size);
      is_empty->second = std::all_of(all.back().begin(), all.back().end(),
                                     [](const Load& load) { return load.empty(); });
      if (is_empty->second) {  // As those of its shape after it, whose loads nobody asks for.
        static_cast<void>(connections_->take_latencies());
      } else {
        append_signature(whole_.topology, all.back(), *connections_, keys.back());
      }
    }
    sees.push_back(sees_fabric(shape, operation, size));
  }
  return known_slowest_.emplace(std::move(key), slowest_by_class(groups, all, keys, sees))
      .first->second;
}

Load ClusterTimes::load_of_message(int from, int to) {
  const NodeId source = whole_.gpus[as_index(from)];
  const NodeId target = whole_.gpus[as_index(to)];
  Load load;
  if (!connections_->add({.source = source, .target = target}, 1.0, load)) {
    throw_unreachable(whole_.topology, source, target);
  }
  merge(load);
  return load;
}

const std::vector<ClusterTimes::Slowest>& ClusterTimes::slowest_messages(const Groups& messages) {
  const auto known = known_messages_.find(messages);
  if (known != known_messages_.end()) {
    return known->second;
  }
  restart_loads();
  std::vector<std::vector<Load>> all;
  std::vector<std::vector<std::int64_t>> keys;
  for (const std::vector<int>& ends : messages) {
    all.push_back({load_of_message(ends[0], ends[1])});
    append_signature(whole_.topology, all.back(), *connections_, keys.emplace_back());
  }
  std::vector<Slowest> slowest =
      slowest_by_class(messages, all, keys, std::vector(messages.size(), SeesFabric::Yes));
  for (Slowest& one : slowest) {
    one.alike = keys[one.group];
    one.alike.push_back(min_rate(whole_.topology, all[one.group].front()));
  }
  return known_messages_.emplace(messages, std::move(slowest)).first->second;
}

const GroupShare* ClusterTimes::share_at(std::optional<std::size_t> index) {
  if (!index) {
    return nullptr;
  }
  asked_->min_share = std::min(asked_->min_share, shares_[*index].share);
  return &shares_[*index];
}

Cluster ClusterTimes::with_links_left(const Cluster& cluster, const GroupShare& share) const {
  Cluster changed = cluster;
  changed.topology = whole_.topology.with_bandwidths(share.left);
  return changed;
}

SimTime ClusterTimes::simulated_once(Operation operation, const std::vector<int>& ranks, Bytes size,
                                     std::optional<std::size_t> share) {
  const GroupShare* const left = share_at(share);
  const auto [entry, fresh] = collectives_.try_emplace({operation, ranks, size, share});
  if (fresh) {
    const Shape* const shape = runtime_ ? &shape_of(ranks) : nullptr;
    keep_ranks(whole_.gpus, ranks, group_);
    const Bytes aligned = aligned_size(operation, size, static_cast<int>(ranks.size()));
    std::optional<Cluster> changed;
    if (left != nullptr && (!runtime_ || runtime_->engine)) {
      changed.emplace(with_links_left(group_, *left));
    }
    const Cluster& cluster = changed ? *changed : group_;
    entry->second = shape != nullptr ? with_nccl(*shape, operation, aligned, cluster, left)
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
  const std::size_t runs = collectives_.size();
  SimTime time;
  if (aligned.count() > 0) {
    std::vector<int> rising = ranks;
    std::sort(rising.begin(), rising.end());
    // Whatever the rates say: a plan makes no group faster.
    time = simulated_once(operation, rising, size, std::nullopt);
    const Groups* const groups = asked_->concurrent ? &asked_->concurrent->of(rising) : nullptr;
    if (groups != nullptr && groups->size() > 1) {
      for (const Slowest& one : slowest_of(operation, *groups, aligned)) {
        time = std::max(time, simulated_once(operation, one.ranks, size, one.share));
      }
    }
  }
  simulated_ += collectives_.size() > runs ? 1 : 0;
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
  const std::size_t runs = transfers_.size();
  SimTime time;
  const Groups* const messages =
      asked_->concurrent ? &asked_->concurrent->of_message(from, to) : nullptr;
  if (messages != nullptr && messages->size() > 1) {
    for (const Slowest& one : slowest_messages(*messages)) {
      time = std::max(time, transferred(one, size));
    }
  } else {
    restart_loads();
    const std::vector<Load> load{load_of_message(from, to)};
    Slowest alone{.ranks = {from, to}};
    append_signature(whole_.topology, load, *connections_, alone.alike);
    alone.alike.push_back(min_rate(whole_.topology, load.front()));
    time = transferred(alone, size);
  }
  simulated_ += transfers_.size() > runs ? 1 : 0;
  asked_->messages.emplace(asked, time);
  return time;
}

// Messages between other stages are often the same once more.
SimTime ClusterTimes::transferred(const Slowest& message, Bytes size) {
  const auto once = [&] {
    return transferred_once(message.ranks[0], message.ranks[1], size, message.share);
  };
  if (message.share) {
    return once();
  }
  const auto [entry, fresh] = alike_.try_emplace({message.alike, size});
  if (fresh) {
    entry->second = once();
  }
  return entry->second;
}

SimTime ClusterTimes::transferred_once(int from, int to, Bytes size,
                                       std::optional<std::size_t> share) {
  const GroupShare* const left = share_at(share);
  const auto [entry, fresh] = transfers_.try_emplace({from, to, size, share});
  if (fresh) {
    const std::array<Transfer, 1> one{
        Transfer{.source = whole_.gpus[as_index(from)], .target = whole_.gpus[as_index(to)]}};
    std::optional<Cluster> changed;
    if (left != nullptr) {
      changed.emplace(with_links_left(whole_, *left));
    }
    const TransferTimes run =
        time_transfers(changed ? *changed : whole_, one, {.size = size, .fidelity = fidelity_});
    CHECK(!run.complaint, "a transfer that is alone did not end");
    entry->second = run.times.front();
  }
  return entry->second;
}

}  // namespace trainyard
