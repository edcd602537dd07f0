// SPDX-License-Identifier: Apache-2.0
// Rings and chains, replayed.
#include <algorithm>
#include <cstddef>

#include "nccl/timing/timing_state.h"
#include "sim/check.h"

namespace trainyard::nccl {
namespace {

// A ring goes at the rate of its slowest connection.
void limit_by_fabric(std::vector<RingWires>& rings, Wiring& wiring,
                     const std::vector<Wire>& between, const std::vector<std::size_t>& channels) {
  std::vector<Bandwidth> least(rings.size(), kMaxBandwidth);
  const std::vector<Bandwidth> shares = wiring.fabric_shares(between);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    least[channels[i]] = std::min(least[channels[i]], shares[i]);
  }
  for (std::size_t c = 0; c < rings.size(); ++c) {
    for (Wire& wire : rings[c].wires) {
      if (wire.transport == Transport::Network) {
        wire.cap = least[c];
      }
    }
  }
}

}  // namespace

void Timer::State::make_rings(std::vector<RingWires>& made, Wiring& wiring, int period) const {
  std::vector<Wire> between;  // Nodes, of all nodes and channels.
  std::vector<std::size_t> channels;
  for (std::size_t c = 0; c < communicator.rings.size(); ++c) {
    const std::vector<int>& order = communicator.rings[c].order;
    const int channel = static_cast<int>(c);
    const std::size_t begin = wiring.ring_begin(order);
    RingWires ring;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int rank = order[(begin + i) % order.size()];
      const bool stands_for_others = period < communicator.nodes && wiring.node_of(rank) >= period;
      const int next = order[(begin + i + 1) % order.size()];
      const int from = wiring.node_of(rank);
      const int to = wiring.node_of(next);
      std::optional<int> out;
      std::optional<int> in;
      if (from != to && !communicator.nics.empty()) {
        out = nic_of_channel(nics_of(rank).ring_out, c);
        in = nic_of_channel(nics_of(next).ring_in, c);
      }
      if (from != to) {
        between.push_back(wiring.connect(rank, next, channel, out, in));
        channels.push_back(c);
      }
      if (!stands_for_others) {
        ring.ranks.push_back(rank);
        ring.wires.push_back(from != to ? between.back()
                                        : wiring.connect(rank, next, channel, out, in));
      }
    }
    made.push_back(std::move(ring));
  }
  if (!engine) {
    limit_by_fabric(made, wiring, between, channels);
  }
}

SimTime Timer::State::ring(const CallPlan& plan) {
  if (communicator.ranks == 1) {
    return {};
  }
  // An engine has all nodes.
  Wiring& wiring = engine ? complete : folded;
  if (rings.empty()) {
    make_rings(rings, wiring, engine ? communicator.nodes : folded.ring_period());
  }
  const int ranks = communicator.ranks;
  const bool reduces_and_gathers = plan.function == Function::AllReduce;
  const int primitives = reduces_and_gathers ? 2 * ranks - 1 : ranks;
  ReplayNetwork network_model;
  network_model.ports = port_rates(wiring, plan.protocol);
  network_model.hosts = static_cast<std::uint32_t>(ranks);
  std::vector<ReplayLane> lanes;
  const std::vector<ChannelShare> shares = channel_shares(plan);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const RingWires& wires = rings[c % rings.size()];
    std::vector<const Wire*> pointers;
    for (const Wire& wire : wires.wires) {
      pointers.push_back(&wire);
    }
    const UnitRule rule = unit_rule(plan, plan.threads, pointers);
    const Bytes bytes = reduces_and_gathers ? shares[c].bytes : shares[c].bytes * ranks;
    const ChunkLoops loops = ring_loops(bytes, ranks, shares[c].chunk);
    const auto first = static_cast<std::uint32_t>(network_model.connections.size());
    const auto count = static_cast<std::uint32_t>(wires.ranks.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const int next = wires.ranks[(i + 1) % count];
      static_cast<void>(
          add_connection(network_model, limited(wires.wires[i], c % rings.size()),
                         {.protocol = plan.protocol,
                          .slots = slots(plan, rule, loops.full > 0 ? loops.chunk : loops.rest),
                          .sender = wires.ranks[i],
                          .receiver = next}));
      lanes.push_back({.rate = block_rate(plan, plan.threads),
                       .program = ring_program(primitives, loops, rule,
                                               first + (i + count - 1) % count, first + i)});
    }
  }
  return run(network_model, lanes);
}

// Data pass from the root through all ranks, or from all to it, in pieces. Calls that follow one
// another overlap: the first rank begins the next while the last still ends this one. So the time
// between two is the longest that any rank is busy, but not less than the way of one piece.
SimTime Timer::State::chain(const CallPlan& plan) {
  if (communicator.ranks == 1) {
    return {};
  }
  if (chains.empty()) {
    make_rings(chains, complete, communicator.nodes);
  }
  ReplayNetwork network_model;
  network_model.ports = port_rates(complete, plan.protocol);
  network_model.hosts = static_cast<std::uint32_t>(communicator.ranks);
  std::vector<ReplayLane> lanes;
  const std::vector<ChannelShare> shares = channel_shares(plan);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const RingWires& wires = chains[c % chains.size()];
    std::vector<const Wire*> pointers;
    for (const Wire& wire : wires.wires) {
      pointers.push_back(&wire);
    }
    const UnitRule rule = unit_rule(plan, plan.threads, pointers);
    const ChunkLoops loops = pipeline_loops(shares[c].bytes, shares[c].chunk);
    const auto first = static_cast<std::uint32_t>(network_model.connections.size());
    const auto count = static_cast<std::uint32_t>(wires.ranks.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i + 1 < count) {
        static_cast<void>(add_connection(network_model, limited(wires.wires[i], c % chains.size()),
                                         {.protocol = plan.protocol,
                                          .slots = slots(plan, rule, shares[c].chunk),
                                          .sender = wires.ranks[i],
                                          .receiver = wires.ranks[i + 1]}));
      }
      const std::uint32_t receive = i == 0 ? kNone : first + i - 1;
      const std::uint32_t send = i + 1 == count ? kNone : first + i;
      lanes.push_back({.rate = block_rate(plan, plan.threads),
                       .program = pipeline_program(loops, rule, {receive, kNone, kNone},
                                                   {send, kNone, kNone})});
    }
  }
  const SimTime all = run(network_model, lanes);
  if (!mode.back_to_back) {
    return all;
  }
  // The way of all units but the first is over when the last rank has had them; a rank itself is
  // busy for one more.
  const SimTime way = run_first(network_model, lanes, 1);
  const SimTime busy = all - way + SimTime(way.picoseconds() / communicator.ranks);
  const UnitRule rule = unit_rule(plan, plan.threads, {});
  const SimTime hop = rule.unit_cost + rule.chunk_cost + profile.nvlink.latency[plan.protocol];
  return std::max(hop * (communicator.ranks - 1), busy);
}

}  // namespace trainyard::nccl
