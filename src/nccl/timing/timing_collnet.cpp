// SPDX-License-Identifier: Apache-2.0
// AllReduce with switches that add up (CollNet, SHARP): a NIC sends each of its elements up once
// and gets the sum once, whatever the number of nodes.
//
// The network does one way: up a tree of switches and down again, as long as that from a
// NIC to one of the next node, and `collnet_extra` more. All nodes do the same at the same time, so
// one represents all of them.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "nccl/timing/timing_state.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// NVIDIA/nccl, src/device/all_reduce.h, CollNetDirect: warps that scatter, gather, and broadcast,
// with COLLNET_COPY_THREADS (96) each and, but for those that gather, one warp that posts.
constexpr int kCopyThreads = 96;
constexpr int kScatterAndBroadcast = 2 * (kCopyThreads + 32);

const std::vector<GraphChannel>& channels_of(const Graph& graph) {
  CHECK(!graph.channels.empty(), "a plan over a graph that was not found");
  return graph.channels;
}

}  // namespace

void Timer::State::require_collnet(const CallPlan& plan) const {
  if (engine) {
    throw ConfigError(
        fmt::format("--fidelity {}: expected another algorithm than {} (--algo, NCCL_ALGO), or "
                    "ports, found one whose sums are made in the switches that the engine has",
                    to_string(engine->fidelity), to_string(plan.algorithm)));
  }
  if (plan.function != Function::AllReduce) {
    throw ConfigError(
        fmt::format("CollNet: expected AllReduce, of which the event model has it, found {}",
                    to_string(plan.function)));
  }
}

// A head for each NIC: ranks scatter a chunk to each head, heads reduce, send and broadcast, ranks
// gather. Groups of warps work on different loops at once, each of which takes as long as the
// slowest of them, or of links and NICs.
SimTime Timer::State::collnet_direct(const CallPlan& plan) {
  require_collnet(plan);
  const int kind = communicator.node_kind.front();
  const int heads =
      static_cast<int>(channels_of(communicator.graphs[as_index(kind)].collnet_direct).size());
  const NodeNetwork node = node_network();
  const Bandwidth link = scale_up_rate();
  const int reducing = std::max(kCopyThreads, plan.threads - kScatterAndBroadcast - kCopyThreads);
  const auto time_of = [&](std::int64_t loop) {
    const Bytes all(loop * std::max(1, plan.channels));
    // Scatter, broadcast and gather take this each.
    const SimTime copy =
        gpu.simple_cost + transfer_time(Bytes(loop), block_rate(plan, kCopyThreads));
    // At a head: its chunk of every rank.
    const SimTime reduce = gpu.simple_cost + transfer_time(Bytes(loop), block_rate(plan, reducing));
    const SimTime to_heads_and_back =
        transfer_time(Bytes(2 * all.count() * (heads - 1) / heads), link);
    const SimTime between = transfer_time(all, node.rate);
    return LoopTime{.all = copy * 3 + reduce + to_heads_and_back + between,
                    .slowest = std::max({copy, reduce, to_heads_and_back, between})};
  };
  const SimTime way = network(node.wire.sender.nic).latency[Protocol::Simple] + node.wire.latency +
                      profile.collnet_extra;
  return profile.ring_base[Protocol::Simple] + way + pipelined(head_loops(plan, heads), time_of);
}

// In each node a chain of ranks reduces towards the head, whose NIC sends, and a second group of
// warps passes on what comes back. Replayed, in one node, with the NIC's ports in both directions.
SimTime Timer::State::collnet_chain(const CallPlan& plan) {
  require_collnet(plan);
  const int kind = communicator.node_kind.front();
  const std::vector<GraphChannel>& graph =
      channels_of(communicator.graphs[as_index(kind)].collnet_chain);
  const int reducing = plan.threads * 3 / 5;  // As in a tree.
  const Bytes chunk = plan.parts.front().chunk;
  const Bytes bytes((plan.bytes.count() + plan.channels - 1) / plan.channels);
  const ChunkLoops loops = pipeline_loops(bytes, chunk);
  const UnitRule rule = unit_rule(plan, reducing, {});
  // One direction of the NIC is sent on by this node, the other received by the next.
  Wiring wiring(cluster, communicator, environment);
  std::vector<std::vector<Wire>> wires;  // Wires by channel: up the chain, to the network, down.
  for (int c = 0; c < plan.channels; ++c) {
    const GraphChannel& channel = graph[as_index(c) % graph.size()];
    const std::vector<int>& gpus = channel.gpus;
    wires.emplace_back();
    for (std::size_t i = gpus.size(); i-- > 1;) {
      wires.back().push_back(wiring.connect({.from = gpus[i], .to = gpus[i - 1], .channel = c}));
    }
    const int next_head =
        communicator.first_rank[1] +
        std::min(gpus.front(), communicator.first_rank[2] - communicator.first_rank[1] - 1);
    wires.back().push_back(wiring.connect({.from = gpus.front(),
                                           .to = next_head,
                                           .channel = c,
                                           .nic_out = channel.net_out,
                                           .nic_in = channel.net_in}));
    for (std::size_t i = 1; i < gpus.size(); ++i) {
      wires.back().push_back(wiring.connect({.from = gpus[i - 1], .to = gpus[i], .channel = c}));
    }
  }
  ReplayNetwork made;
  made.ports = port_rates(wiring, plan.protocol);
  made.hosts = static_cast<std::uint32_t>(communicator.ranks);
  std::vector<ReplayLane> lanes;
  for (int c = 0; c < plan.channels; ++c) {
    const std::vector<int>& gpus = graph[as_index(c) % graph.size()].gpus;
    const auto first = static_cast<std::uint32_t>(made.connections.size());
    const auto count = static_cast<std::uint32_t>(wires[as_index(c)].size());
    for (const Wire& wire : wires[as_index(c)]) {
      // The head's proxy sends and receives.
      static_cast<void>(add_connection(made, wire,
                                       {.protocol = plan.protocol,
                                        .slots = slots(plan, rule, chunk),
                                        .sender = gpus.front(),
                                        .receiver = gpus.front(),
                                        .extra_latency = profile.collnet_extra}));
    }
    // Blocks up to the head's reduce, those from there on broadcast: one more than connections.
    for (std::uint32_t i = 0; i <= count; ++i) {
      const bool reduces = i < gpus.size();
      lanes.push_back(
          {.rate = block_rate(plan, reduces ? reducing : plan.threads - reducing),
           .program = loop_program(1, loops, rule, {i == 0 ? kNone : first + i - 1, kNone, kNone},
                                   {i == count ? kNone : first + i, kNone, kNone}),
           .rank = reduces ? gpus[gpus.size() - 1 - i] : gpus[i - gpus.size()],
           .channel = c,
           .work = reduces ? "reduces" : "broadcasts"});
    }
  }
  return profile.ring_base[Protocol::Simple] + run(made, lanes);
}

}  // namespace trainyard::nccl
