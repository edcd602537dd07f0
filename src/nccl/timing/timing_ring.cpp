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
  std::vector<Bandwidth> min(rings.size(), kMaxBandwidth);
  const std::vector<Bandwidth> shares = wiring.fabric_shares(between);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    min[channels[i]] = std::min(min[channels[i]], shares[i]);
  }
  for (std::size_t c = 0; c < rings.size(); ++c) {
    for (Wire& wire : rings[c].wires) {
      if (wire.transport == Transport::Network) {
        wire.cap = min[c];
      }
    }
  }
}

}  // namespace

void Timer::State::make_rings(std::vector<RingWires>& made, Wiring& wiring, int period) const {
  std::vector<Wire> between;  // Nodes, of all nodes and channels.
  std::vector<std::size_t> channels;
  const std::vector<std::vector<NodeFlow>> flows = ring_flows();
  for (std::size_t c = 0; c < flows.size(); ++c) {
    const std::size_t begin = wiring.ring_begin(communicator.rings[c].order);
    RingWires& ring = made.emplace_back();
    for (std::size_t i = 0; i < flows[c].size(); ++i) {
      const NodeFlow& flow = flows[c][(begin + i) % flows[c].size()];
      const int node = wiring.node_of(flow.from);
      const bool is_between = node != wiring.node_of(flow.to);
      const bool stands_for_others = period < communicator.nodes && node >= period;
      if (stands_for_others && !is_between) {
        continue;
      }
      const Wire wire = wiring.connect(flow);
      if (is_between) {
        between.push_back(wire);
        channels.push_back(c);
      }
      if (!stands_for_others) {
        ring.ranks.push_back(flow.from);
        ring.wires.push_back(wire);
      }
    }
  }
  if (!engine) {
    limit_by_fabric(made, wiring, between, channels);
  }
}

// Chunks have at least 16 bytes, so that of few bytes only k of the ranks' n chunks have any. What
// a block does about a chunk that it has sent on is waited for only where the next one comes at
// once: (k - 1) / (n - 1) of it in the mean.
SimTime Timer::State::ll_busy(const CallPlan& plan, Bytes bytes) const {
  constexpr std::int64_t kLeastChunk = 16;
  if (plan.protocol != Protocol::LL) {
    return SimTime(0);
  }
  const std::int64_t ranks = communicator.ranks;
  const std::int64_t chunks = (bytes.count() + kLeastChunk - 1) / kLeastChunk;
  return plan.function != Function::AllReduce || chunks >= ranks
             ? gpu.ll_busy
             : SimTime(gpu.ll_busy.picoseconds() * std::max<std::int64_t>(0, chunks - 1) /
                       (ranks - 1));
}

ReplayedCall Timer::State::ring_lanes(const CallPlan& plan, const std::vector<RingWires>& wires,
                                      const Wiring& wiring) const {
  const bool is_chain = is_rooted(plan.function);
  const int ranks = communicator.ranks;
  const bool reduces_and_gathers = plan.function == Function::AllReduce;
  const int primitives = is_chain ? 1 : reduces_and_gathers ? 2 * ranks - 1 : ranks;
  ReplayedCall made;
  made.network.ports = port_rates(wiring, plan.protocol);
  made.network.hosts = static_cast<std::uint32_t>(ranks);
  const std::vector<ChannelPart> shares = channel_shares(plan);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const RingWires& ring = wires[c % wires.size()];
    const Bytes bytes = shares[c].bytes;
    const Bytes chunk = shares[c].chunk;
    const UnitRule rule = unit_rule(plan, plan.threads, ring.wires);
    UnitRule over_nvlink = rule;
    if (!is_chain) {
      over_nvlink.chunk_cost = rule.chunk_cost + ll_busy(plan, bytes);
    }
    const ChunkLoops loops =
        is_chain ? pipeline_loops(bytes, chunk)
                 : ring_loops(reduces_and_gathers ? bytes : bytes * ranks, ranks, chunk);
    const auto first = static_cast<std::uint32_t>(made.network.connections.size());
    const auto count = static_cast<std::uint32_t>(ring.ranks.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool ends = is_chain && i + 1 == count;
      if (!ends) {
        add_connection(made.network, limited(ring.wires[i], c % wires.size()),
                       {.protocol = plan.protocol,
                        .slots = slots(plan, rule, is_chain || loops.full > 0 ? chunk : loops.rest),
                        .sender = ring.ranks[i],
                        .receiver = ring.ranks[(i + 1) % count]});
      }
      const bool nvlink = ring.wires[i].transport == Transport::NvLink;
      const std::uint32_t receive = is_chain && i == 0 ? kNone : first + (i + count - 1) % count;
      const std::uint32_t send = ends ? kNone : first + i;
      made.lanes.push_back({.rate = block_rate(plan, plan.threads),
                            .program = loop_program(primitives, loops, nvlink ? over_nvlink : rule,
                                                    {receive, kNone, kNone}, {send, kNone, kNone}),
                            .rank = ring.ranks[i],
                            .channel = static_cast<int>(c)});
    }
  }
  return made;
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
  const ReplayedCall call = ring_lanes(plan, rings, wiring);
  return run(call.network, call.lanes);
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
  const ReplayedCall call = ring_lanes(plan, chains, complete);
  const SimTime all = run(call.network, call.lanes);
  if (!mode.back_to_back) {
    return all;
  }
  // The way of all units but the first is over when the last rank has had them; a rank itself is
  // busy for one more.
  const SimTime way = run_first(call.network, call.lanes, 1);
  const SimTime busy = all - way + SimTime(way.picoseconds() / communicator.ranks);
  const UnitRule rule = unit_rule(plan, plan.threads, {});
  const SimTime hop = rule.unit_cost + rule.chunk_cost + gpu.link_latency[plan.protocol];
  return std::max(hop * (communicator.ranks - 1), busy);
}

}  // namespace trainyard::nccl
