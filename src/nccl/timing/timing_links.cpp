// SPDX-License-Identifier: Apache-2.0
// Computes what links let through of calls in closed form, which know them as a rate of all NICs or
// of a port: the others on the way, which several ranks share, and those of other ranks.
//
//     rate of a call = min over links (rate of the link / bytes on it for each of the call)
//
// Which bytes a link gets is what Timer::loads() says, with NICs, PCIe links, host bridges and
// staging at the share that they reach. All links count, of all nodes and of the fabric, so that a
// call is as slow as its slowest part; over an engine the fabric is left to it. Where switches
// choose ways by themselves, or a few peers stand for all, the fabric counts by its cuts
// (network/sharing/fabric_cuts.h).
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "nccl/timing/timing_state.h"
#include "network/flow/max_min.h"
#include "network/sharing/load_sharing.h"
#include "sim/check.h"

namespace trainyard::nccl {
namespace {

// Ways that are computed for one call; beyond, peers and channels stand for several each.
constexpr int kMaxWays = 1 << 16;
constexpr int kMinPeers = 16;
constexpr int kMinChannels = 8;  // All NICs of a GPU.

Bandwidth bandwidth_of(double bits_per_second) {
  const auto max = static_cast<double>(kMaxBandwidth.bits_per_second());
  return bits_per_second >= max
             ? kMaxBandwidth
             : Bandwidth(std::max<std::int64_t>(1, std::llround(bits_per_second)));
}

}  // namespace

Bandwidth Timer::State::scale_up_rate() {
  const Wire wire = complete.connect({.to = std::min(1, communicator.ranks - 1)});
  Bandwidth rate = wire.cap;
  for (const std::uint32_t port : wire.ports) {
    rate = std::min(rate, complete.ports()[port].rate);
  }
  return rate;
}

// In a full mesh each peer is at the end of a link of its own.
Bandwidth Timer::State::rate_to_peers(int peers) {
  const Bandwidth one = scale_up_rate();
  for (int peer = 1; peer <= peers; ++peer) {
    const Wire wire = complete.connect({.to = peer});
    if (wire.transport != Transport::NvLink || wire.switches > 0 || wire.ports.size() != 1) {
      return one;
    }
  }
  return Bandwidth(one.bits_per_second() * peers);
}

// The sum of their max-min shares: each NIC once, however many ranks use it, and no more than PCIe
// and links between sockets carry.
Bandwidth Timer::State::rate_together(const std::vector<Wire>& wires) const {
  MaxMinSolver solver(port_rates(complete, Protocol::Simple));
  std::vector<MaxMinSolver::ClassIndex> classes;
  for (const Wire& wire : wires) {
    std::vector<MaxMinSolver::LinkIndex> ports = wire.ports;
    std::sort(ports.begin(), ports.end());
    ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
    classes.push_back(solver.add_class(ports));
    solver.set_multiplicity(classes.back(), 1);
  }
  static_cast<void>(solver.solve());
  std::int64_t sum = 0;
  for (const MaxMinSolver::ClassIndex one : classes) {
    sum += static_cast<std::int64_t>(solver.rate(one) >> kFlowRateFractionBits);
  }
  return Bandwidth(sum);
}

Timer::State::NodeNetwork Timer::State::node_network() {
  const std::vector<int>& begins = communicator.first_rank;
  std::size_t node = 0;
  for (std::size_t other = 1; other + 1 < begins.size(); ++other) {
    if (begins[other + 1] - begins[other] < begins[node + 1] - begins[node]) {
      node = other;
    }
  }
  const int peer = begins[node == 0 ? 1 : 0];  // A peer of a node that has at least as many ranks.
  constexpr int kTurns = 8;                    // Turns of the NICs of a rank.
  std::vector<Wire> wires;
  for (int rank = 0; rank < begins[node + 1] - begins[node]; ++rank) {
    for (int turn = 0; turn < kTurns; ++turn) {
      wires.push_back(
          complete.connect({.from = begins[node] + rank, .to = peer + rank, .channel = turn}));
    }
  }
  NodeNetwork made;
  made.wire = wires.back();
  made.rate = rate_together(wires);
  made.one_gpu = rate_together({wires.begin(), wires.begin() + kTurns});
  return made;
}

OwnWays::OwnWays(Routing& routing)
    : loads(routing.policy().spreads() ? routing.one_way() : routing) {}

ConnectionLoads& Timer::State::own_connections() {
  if (!own_ways) {
    own_ways.emplace(complete.routing());
  }
  own_ways->loads.restart();
  return own_ways->loads;
}

double Timer::State::rate_over_links(const Load& load, bool is_whole) {
  const Topology& topology = cluster.topology;
  if (engine) {
    return shared_rates(topology, std::vector<Load>{without_fabric(topology, load)}).front();
  }
  if (traits(cluster.routing.policy).spreads() || !is_whole) {
    if (!own_ways->cuts) {
      own_ways->cuts.emplace(topology);
    }
    return own_ways->cuts->rate(load);
  }
  return shared_rates(topology, std::vector<Load>{load}).front();
}

std::optional<Bandwidth> Timer::State::rate_of_pairs(Operation operation) {
  if (communicator.ranks == 1) {
    return std::nullopt;
  }
  const auto [known, is_new] = known_rates.try_emplace({-1, static_cast<int>(operation), 0}, 0.0);
  if (is_new) {
    const int peers = std::max(kMinPeers, kMaxWays / communicator.ranks);
    const Load load = exchange_load(operation, peers, LinkShares::AsReached, own_connections());
    known->second = rate_over_links(load, peers >= communicator.ranks - 1);
  }
  return std::isinf(known->second) ? std::nullopt : std::optional(bandwidth_of(known->second));
}

Timer::State::NodeNetwork Timer::State::node_network(const CallPlan& plan, double times) {
  CHECK(plan.algorithm == Algorithm::NvlsTree || plan.algorithm == Algorithm::Pat,
        "a call that sends by all NICs");
  // One byte of each channel, in a tree of each head.
  CallPlan one = plan;
  one.channels = std::min(plan.channels, std::max(kMinChannels, kMaxWays / communicator.ranks));
  one.bytes = Bytes(std::int64_t{one.channels} * std::max(1, communicator.nvls_heads));
  const auto [known, is_new] = known_rates.try_emplace(
      {static_cast<int>(plan.algorithm), static_cast<int>(plan.function), plan.channels}, 0.0);
  if (is_new) {
    const Load load = loads(flows_of(one), LinkShares::AsReached, own_connections()).front();
    known->second = rate_over_links(load, one.channels == plan.channels);
  }
  NodeNetwork made = node_network();
  const double rate = known->second * times * static_cast<double>(one.bytes.count());
  made.rate = std::min(made.rate, bandwidth_of(rate)).scaled(limits.share);
  return made;
}

}  // namespace trainyard::nccl
