// SPDX-License-Identifier: Apache-2.0
// NVLSTree and PAT over an engine. Their closed forms know the network as the rate of all NICs of a
// node. The traffic between nodes of one call is sent on its own, as fast as eight steps of each
// connection allow, over the engine and over ports; if the engine takes longer, NICs are slower in
// the closed form by as much.
#include <algorithm>
#include <limits>

#include "collectives/algorithms/algorithms.h"
#include "nccl/timing/timing_state.h"
#include "nccl/tuning/chunking.h"
#include "sim/check.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// Messages that each flow has at most, and that all have together but for the least of each.
constexpr std::int64_t kMaxMessages = 256;
constexpr std::int64_t kMinMessages = 16;
constexpr std::int64_t kMessages = 200'000;
constexpr std::int64_t kPacketMessages = 50'000;

}  // namespace

double Timer::State::slowdown(const std::vector<NodeFlow>& flows, Bytes chunk) {
  CHECK(engine.has_value(), "nothing to be slowed down by");
  const std::int64_t all = engine->fidelity == Fidelity::Packet ? kPacketMessages : kMessages;
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(1, flows.size()));
  const Bytes max = chunk * std::clamp(all / count, kMinMessages, kMaxMessages);
  ReplayNetwork over;
  over.hosts = static_cast<std::uint32_t>(communicator.ranks);
  std::vector<ReplayLane> lanes;
  std::vector<Wire> wires;
  for (const NodeFlow& flow : flows) {
    wires.push_back(complete.connect(flow));
  }
  over.ports = port_rates(complete, Protocol::Simple);
  for (std::size_t index = 0; index < flows.size(); ++index) {
    const TransferJob job{.connection = add_connection(over, wires[index],
                                                       {.protocol = Protocol::Simple,
                                                        .slots = kFifoSteps,
                                                        .sender = flows[index].from,
                                                        .receiver = flows[index].to}),
                          .bytes = std::min(flows[index].bytes, max),
                          .message = chunk,
                          .unit = chunk};
    // The closed forms have no hosts, whose limit would hide that of the fabric.
    over.connections.back().host_cost = SimTime(0);
    over.connections.back().host_work = {};
    for (const bool sends : {true, false}) {
      lanes.push_back({.rate = kMaxBandwidth, .program = transfer_program({job}, sends)});
    }
  }
  constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
  const SimTime over_engine = run_first(over, lanes, kAll);
  for (ReplayConnection& connection : over.connections) {
    connection.latency += connection.path_latency;
  }
  return std::max(1.0, over_engine / replay(over, lanes, kAll));
}

// The edges of the tree of each channel between heads of the same index, both ways.
std::vector<NodeFlow> Timer::State::nvls_tree_flows(const CallPlan& plan) const {
  const int heads = std::max(1, communicator.nvls_heads);
  const Bytes bytes(
      std::max<std::int64_t>(1, plan.bytes.count() / std::max(1, plan.channels) / heads));
  const auto head = [&](int node, int index) {
    const auto kind = as_index(communicator.node_kind[as_index(node)]);
    return communicator.first_rank[as_index(node)] +
           communicator.graphs[kind].nvls.channels[as_index(index)].gpus.front();
  };
  const auto nic = [&](int node, int index) {
    const auto kind = as_index(communicator.node_kind[as_index(node)]);
    return nic_of_channel(communicator.nics[kind].nvls, as_index(index));
  };
  std::vector<NodeFlow> flows;
  for (int channel = 0; channel < plan.channels; ++channel) {
    const std::vector<std::uint32_t> parents = double_tree_parents(
        static_cast<std::uint32_t>(communicator.nodes), static_cast<std::uint32_t>(channel));
    for (int node = 0; node < communicator.nodes; ++node) {
      if (parents[as_index(node)] == kNoParent) {
        continue;
      }
      const int parent = static_cast<int>(parents[as_index(node)]);
      for (int index = 0; index < heads; ++index) {
        flows.push_back({.from = head(node, index),
                         .to = head(parent, index),
                         .channel = channel,
                         .nic_out = nic(node, index),
                         .nic_in = nic(parent, index),
                         .bytes = bytes});
        flows.push_back(reversed(flows.back()));
      }
    }
  }
  return flows;
}

// A rank sends blocks a power of two of ranks away: the farther, the fewer (NVIDIA/nccl,
// src/device/primitives.h: PatRSAlgorithm, PatAGAlgorithm).
std::vector<NodeFlow> Timer::State::pat_flows(const CallPlan& plan) const {
  const int ranks = communicator.ranks;
  const std::int64_t block =
      std::max<std::int64_t>(1, plan.bytes.count() / std::max(1, plan.channels));
  std::vector<NodeFlow> flows;
  for (int channel = 0; channel < plan.channels; ++channel) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (int distance = 1; distance < ranks; distance *= 2) {
        // Offsets from 1 to ranks - 1 whose lowest bit is the distance.
        const int blocks = (ranks - 1 - distance) / (2 * distance) + 1;
        const int to = plan.function == Function::AllGather ? (rank - distance + ranks) % ranks
                                                            : (rank + distance) % ranks;
        if (complete.node_of(rank) != complete.node_of(to)) {
          flows.push_back(
              {.from = rank, .to = to, .channel = channel, .bytes = Bytes(block * blocks)});
        }
      }
    }
  }
  return flows;
}

}  // namespace trainyard::nccl
