// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/concurrent_calls.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing_gpu_links.h"
#include "nccl/tuning/choice.h"
#include "parallelism/traffic/gpu_domains.h"
#include "parallelism/traffic/load_signature.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

bool is_between_gpus(const Topology& topology, LinkId link) {
  const LinkKind kind = topology.link(link).spec.kind;
  return kind == LinkKind::NvLink || kind == LinkKind::Xgmi;
}

// Rings and trees have a rate on each link; all else knows one link between GPUs for all.
bool has_channels(const std::optional<nccl::CallPlan>& plan) {
  return plan &&
         (plan->algorithm == nccl::Algorithm::Ring || plan->algorithm == nccl::Algorithm::Tree);
}

nccl::Domains joined_domains(const nccl::InitOptions& options) {
  return options.environment.mnnvl_enable == 0 ? nccl::Domains::Apart : nccl::Domains::Joined;
}

// A call under way.
struct Progress {
  double left = 1.0;  // The part of it that was not done at `since`.
  SimTime since = {};
  SimTime time = {};  // The time that all of it takes at the present pace.
  SimTime end = {};
};

void set_pace(Progress& progress, SimTime time, SimTime now, bool is_new) {
  if (!is_new && time == progress.time) {
    return;  // Nothing is rounded twice.
  }
  if (!is_new && progress.time > SimTime()) {
    progress.left = std::max(0.0, progress.left - (now - progress.since) / progress.time);
  }
  progress.since = now;
  progress.time = time;
  progress.end =
      now + SimTime(std::llround(progress.left * static_cast<double>(time.picoseconds())));
}

}  // namespace

std::vector<SimTime> ends_side_by_side(std::span<const SimTime> starts, const TimesBeside& times) {
  std::vector<Progress> all(starts.size());
  std::vector<std::size_t> waiting(starts.size());
  for (std::size_t call = 0; call < waiting.size(); ++call) {
    waiting[call] = call;
  }
  std::vector<std::size_t> running;
  while (!waiting.empty() || !running.empty()) {
    SimTime now = SimTime::max();
    for (const std::size_t call : waiting) {
      now = std::min(now, starts[call]);
    }
    for (const std::size_t call : running) {
      now = std::min(now, all[call].end);
    }
    std::erase_if(running, [&](std::size_t call) { return all[call].end == now; });
    std::vector<bool> is_new(starts.size());
    std::erase_if(waiting, [&](std::size_t call) {
      if (starts[call] == now) {
        is_new[call] = true;
        running.push_back(call);
      }
      return starts[call] == now;
    });
    std::ranges::sort(running);
    const std::vector<SimTime> paces = running.empty() ? std::vector<SimTime>() : times(running);
    for (std::size_t index = 0; index < running.size(); ++index) {
      set_pace(all[running[index]], paces[index], now, is_new[running[index]]);
    }
  }
  std::vector<SimTime> ends;
  for (const Progress& one : all) {
    ends.push_back(one.end);
  }
  return ends;
}

ConcurrentCalls::ConcurrentCalls(const Cluster& cluster, const Settings& settings)
    : whole_(cluster),
      group_(cluster),
      settings_(settings),
      domain_of_rank_(domains_of_gpus(cluster)),
      routing_(cluster.topology, cluster.routing),
      connections_(routing_),
      shapes_(cluster, domain_of_rank_, routing_) {
  if (settings_.searches == nullptr) {
    settings_.searches = &own_searches_;
  }
}

// Groups of equal shape have equal communicators.
const ConcurrentCalls::Known& ConcurrentCalls::communicator_of(const ConcurrentCall& call) {
  auto key = std::make_pair(call.options, shapes_.shape(call.ranks));
  const auto known = communicators_.find(key);
  if (known != communicators_.end()) {
    return known->second;
  }
  keep_ranks(whole_.gpus, call.ranks, group_);
  Known made{.communicator =
                 nccl::make_communicator(nccl::job_nodes(group_, joined_domains(*call.options)),
                                         *call.options, settings_.searches)
                     .communicator,
             .number = static_cast<std::int64_t>(communicators_.size())};
  return communicators_.emplace(std::move(key), std::move(made)).first->second;
}

ConcurrentCalls::Prepared ConcurrentCalls::plan(const ConcurrentCall& call) {
  CHECK(call.ranks.size() > 1, "a communicator has two ranks or more");
  const Known& known = communicator_of(call);
  const nccl::Communicator& communicator = known.communicator;
  Prepared made{.call = &call, .communicator = &communicator};
  made.alike = {known.number, static_cast<std::int64_t>(call.operation), call.size.count()};
  if (const auto function = nccl::function_of(call.operation)) {
    made.plan = nccl::plan_call(communicator, call.options->environment, *function,
                                nccl::call_bytes(*function, call.size, communicator.ranks),
                                {.tuner = settings_.tuner});
    const nccl::Algorithm algorithm = made.plan->algorithm;
    if (algorithm == nccl::Algorithm::CollNetDirect || algorithm == nccl::Algorithm::CollNetChain) {
      throw ConfigError(
          fmt::format("calls side by side: expected an algorithm whose links are known, found {}; "
                      "NCCL_COLLNET_ENABLE=0 plans without",
                      to_string(algorithm)));
    }
  }
  if (!settings_.engine && has_channels(made.plan) && traits(whole_.routing.policy).spreads()) {
    made.sees_fabric = SeesFabric::No;
  }
  return made;
}

// Not the bytes, with which all weights of a load grow alike.
ConcurrentCalls::Use ConcurrentCalls::use_of(const Prepared& call) {
  Use use{call.call->ranks, {static_cast<int>(call.alike.front())}};
  if (!call.plan) {
    use.second.insert(use.second.end(), {-1, static_cast<int>(call.call->operation)});
    return use;
  }
  use.second.push_back(static_cast<int>(call.plan->algorithm));
  if (!has_channels(call.plan)) {
    use.second.insert(use.second.end(),
                      {static_cast<int>(call.plan->function), call.plan->channels});
  }
  return use;
}

ConcurrentCalls::KnownLoads ConcurrentCalls::loads_of(const Prepared& call) {
  keep_ranks(whole_.gpus, call.call->ranks, group_);
  const nccl::CommunicatorPlace place{.cluster = group_,
                                      .communicator = *call.communicator,
                                      .profile = settings_.profile,
                                      .environment = call.call->options->environment,
                                      .routing = routing_};
  KnownLoads made{.loads = call.plan
                               ? loads_with_gpu_links(place, *call.plan, connections_)
                               : loads_with_gpu_links(place, call.call->operation, connections_),
                  .signature = {}};
  append_signature(whole_.topology, made.loads, connections_, made.signature);
  // Hashes put connections of one group on the same links between switches, and not of another.
  for (const double rate : shared_rates(whole_.topology, made.loads)) {
    made.signature.push_back(std::isinf(rate) ? -1 : std::llround(rate));
  }
  return made;
}

std::vector<ConcurrentCalls::Prepared> ConcurrentCalls::prepare(
    std::span<const ConcurrentCall> calls) {
  std::vector<Prepared> prepared;
  std::vector<Use> uses;
  for (const ConcurrentCall& call : calls) {
    prepared.push_back(plan(call));
    uses.push_back(use_of(prepared.back()));
  }
  const auto [known, is_new] = known_loads_.try_emplace(std::move(uses));
  if (is_new) {
    connections_.restart();
    for (const Prepared& call : prepared) {
      known->second.push_back(loads_of(call));
    }
  }
  for (std::size_t index = 0; index < prepared.size(); ++index) {
    const KnownLoads& of_call = known->second[index];
    prepared[index].loads = of_call.loads;
    prepared[index].alike.insert(prepared[index].alike.end(), of_call.signature.begin(),
                                 of_call.signature.end());
  }
  return prepared;
}

// With ports the event model has limits for all but links between GPUs.
ConcurrentCalls::Left ConcurrentCalls::links_left(const Prepared& call,
                                                  const GroupShare& share) const {
  const Topology& topology = whole_.topology;
  const bool as_they_are = has_channels(call.plan);
  std::map<LinkId, Bandwidth> left;
  double least = 1.0;
  for (const auto& [link, bandwidth] : share.left) {
    const bool between_gpus = is_between_gpus(topology, link);
    if (settings_.engine || (between_gpus && as_they_are)) {
      left[link] = bandwidth;
    }
    if (between_gpus) {
      least = std::min(
          least, static_cast<double>(bandwidth.bits_per_second()) /
                     static_cast<double>(topology.link(link).spec.bandwidth.bits_per_second()));
    }
  }
  for (const Load& load : call.loads) {
    for (const LinkWeight& one : load) {
      if (!as_they_are && least < 1.0 && is_between_gpus(topology, one.link)) {
        left[one.link] = topology.link(one.link).spec.bandwidth.scaled(least);
      }
    }
  }
  return {left.begin(), left.end()};
}

SimTime ConcurrentCalls::simulated(const Prepared& call, const GroupShare& share,
                                   const Left& left) {
  keep_ranks(whole_.gpus, call.call->ranks, group_);
  std::optional<Cluster> changed;
  if (!left.empty()) {
    changed.emplace(group_);
    changed->topology = whole_.topology.with_bandwidths(left);
  }
  // Engines take rates from it, and Adaptive remembers the routes that it gave.
  const bool has_own_routing = settings_.engine || traits(whole_.routing.policy).switches_choose();
  nccl::Timer timer(changed ? *changed : group_, *call.communicator, settings_.profile,
                    call.call->options->environment, settings_.mode, settings_.engine,
                    has_own_routing ? nullptr : &routing_);
  if (share.is_limited && !settings_.engine) {
    timer.limit({.channels = share.limits, .share = share.share});
  }
  if (const auto& basis = settings_.profile.basis) {
    if (const auto reason = basis->beyond(timer.machine(), call.call->operation,
                                          call.communicator->ranks, call.call->size)) {
      beyond_profile_.insert(*reason);
    }
  }
  const nccl::Timing timing = call.plan
                                  ? timer.collective(*call.plan)
                                  : timer.point_to_point(call.call->operation, call.call->size);
  if (timing.engine && timing.engine->complaint) {
    throw ConfigError("calls side by side: a call never ends: " + *timing.engine->complaint);
  }
  return timing.time;
}

SimTime ConcurrentCalls::time(const Prepared& call, const GroupShare& share) {
  const GroupShare alone;
  const GroupShare& taken = share.is_limited ? share : alone;
  Left left = links_left(call, taken);
  const auto [known, is_new] =
      known_.try_emplace({call.alike, taken.limits, taken.share, std::move(left)});
  if (is_new) {
    known->second = simulated(call, taken, std::get<Left>(known->first));
  }
  return known->second;
}

std::vector<SimTime> ConcurrentCalls::times(std::span<const Prepared> calls,
                                            std::span<const std::size_t> running) {
  std::vector<std::vector<Load>> loads;
  std::vector<GroupClass> classes;
  for (const std::size_t call : running) {
    classes.push_back({.groups = {loads.size()}, .sees_fabric = calls[call].sees_fabric});
    loads.push_back(calls[call].loads);
  }
  const std::vector<GroupShare> shares = group_shares(whole_.topology, loads, classes);
  std::vector<SimTime> times;
  for (std::size_t index = 0; index < running.size(); ++index) {
    times.push_back(time(calls[running[index]], shares[index]));
  }
  return times;
}

std::vector<ConcurrentTime> ConcurrentCalls::run(std::span<const ConcurrentCall> calls) {
  const std::vector<Prepared> prepared = prepare(calls);
  std::vector<SimTime> starts;
  for (const ConcurrentCall& call : calls) {
    starts.push_back(call.start);
  }
  const std::vector<SimTime> ends = ends_side_by_side(
      starts, [&](std::span<const std::size_t> running) { return times(prepared, running); });
  std::vector<ConcurrentTime> made;
  for (std::size_t index = 0; index < prepared.size(); ++index) {
    const Prepared& one = prepared[index];
    made.push_back({.communicator = one.communicator,
                    .plan = one.plan,
                    .end = ends[index],
                    .alone = time(one, {})});
  }
  return made;
}

}  // namespace trainyard
