// SPDX-License-Identifier: Apache-2.0
// Counts what a call puts on links that others may use as well: all but those between GPUs.
// Channels of rings and trees are loads of their own, as the data of one go at one rate all the
// way; what else is one load, whose messages all end together.
//
// Links that do not carry their whole rate (NICs, PCIe, host bridges, staging) count as if more
// crossed them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "nccl/timing/timing_state.h"
#include "network/sharing/load_sharing.h"
#include "sim/check.h"
#include "sim/ids.h"
#include "topology/graph/path.h"

namespace trainyard::nccl {
namespace {

// Limit of an exchange between many ranks: so many peers of each, spread evenly, represent all.
constexpr int kMostPeers = 64;

}  // namespace

std::optional<int> nic_of_channel(const std::vector<int>& nics, std::size_t channel) {
  return channel < nics.size() ? std::optional(nics[channel]) : std::nullopt;
}

const NodeNics& Timer::State::nics_of(int rank) const {
  return communicator.nics[as_index(communicator.node_kind[as_index(complete.node_of(rank))])];
}

Wire Timer::State::limited(const Wire& wire, std::size_t channel) const {
  Wire made = wire;
  const double limit = channel < limits.channels.size() ? limits.channels[channel]
                                                        : std::numeric_limits<double>::infinity();
  if (wire.transport != Transport::NvLink &&
      limit < static_cast<double>(made.cap.bits_per_second())) {
    made.cap = Bandwidth(std::max<std::int64_t>(1, std::llround(limit)));
  }
  return made;
}

// Adds the load of the path between two devices of a server.
void Timer::State::add_server_load(std::span<const LinkId> path, bool to_nic, double weight,
                                   Load& load) const {
  const Topology& topology = cluster.topology;
  double pcie_share = profile.pcie_rate;
  if (to_nic && path_distance(topology, path) > Distance::Pxb) {
    pcie_share *= profile.host_bridge_rate;
  }
  const bool is_through_host = is_staged(topology, path);
  for (const LinkId id : path) {
    const Link& link = topology.link(id);
    if (link.spec.kind == LinkKind::NvLink || link.spec.kind == LinkKind::Xgmi) {
      continue;
    }
    double of_link = link.spec.kind == LinkKind::Pcie ? pcie_share : 1.0;
    const auto server = topology.node(link.source).server;
    if (is_through_host && server) {
      of_link *= topology.server(*server).staging_share * profile.staging_rate;
    }
    load.push_back({.link = id, .weight = weight / of_link});
  }
}

void Timer::State::add_load(const NetworkEnds& ends, int channel, double weight,
                            ConnectionLoads& connections, Load& load) const {
  add_server_load(ends.outward, true, weight, load);
  add_server_load(ends.inward, true, weight, load);
  const auto label = static_cast<std::uint32_t>(channel);
  const std::vector<ConnectionSpec> pairs = complete.queue_pairs(ends.out, ends.in, label);
  const std::size_t before = load.size();
  for (const ConnectionSpec& pair : pairs) {
    CHECK(connections.add(pair, weight / static_cast<double>(pairs.size()), load),
          "a wire that was connected has a way");
  }
  for (std::size_t index = before; index < load.size(); ++index) {
    const Link& link = cluster.topology.link(load[index].link);
    if (cluster.topology.node(link.source).server || cluster.topology.node(link.target).server) {
      load[index].weight /= network_rate;
    }
  }
}

void Timer::State::add_load(const NodeFlow& flow, double weight, ConnectionLoads& connections,
                            Load& load) {
  if (complete.node_of(flow.from) != complete.node_of(flow.to)) {
    add_load(complete.ends(flow.from, flow.to, flow.channel, flow.nic_out, flow.nic_in),
             flow.channel, weight, connections, load);
    return;
  }
  std::vector<LinkId> path;
  if (complete.routing().route(cluster.gpus[as_index(flow.from)], cluster.gpus[as_index(flow.to)],
                               static_cast<std::uint32_t>(flow.channel), path)) {
    add_server_load(path, false, weight, load);
  }
}

// The connections of each channel of the rings.
std::vector<std::vector<NodeFlow>> Timer::State::ring_flows() const {
  std::vector<std::vector<NodeFlow>> flows;
  for (std::size_t c = 0; c < communicator.rings.size(); ++c) {
    const std::vector<int>& order = communicator.rings[c].order;
    std::vector<NodeFlow>& of_channel = flows.emplace_back();
    for (std::size_t i = 0; i < order.size(); ++i) {
      NodeFlow flow{
          .from = order[i], .to = order[(i + 1) % order.size()], .channel = static_cast<int>(c)};
      if (complete.node_of(flow.from) != complete.node_of(flow.to) && !communicator.nics.empty()) {
        flow.nic_out = nic_of_channel(nics_of(flow.from).ring_out, c);
        flow.nic_in = nic_of_channel(nics_of(flow.to).ring_in, c);
      }
      of_channel.push_back(flow);
    }
  }
  return flows;
}

std::vector<std::vector<NodeFlow>> Timer::State::tree_flows() const {
  std::vector<std::vector<NodeFlow>> flows;
  for (std::size_t c = 0; c < communicator.trees.size(); ++c) {
    std::vector<NodeFlow>& of_channel = flows.emplace_back();
    for (int rank = 0; rank < communicator.ranks; ++rank) {
      const int parent = communicator.trees[c].up[as_index(rank)];
      if (parent == kNoRank) {
        continue;
      }
      NodeFlow up{.from = rank, .to = parent, .channel = static_cast<int>(c)};
      if (complete.node_of(rank) != complete.node_of(parent) && !communicator.nics.empty()) {
        up.nic_out = nic_of_channel(nics_of(rank).tree, c);
        up.nic_in = nic_of_channel(nics_of(parent).tree, c);
      }
      NodeFlow down = up;
      std::swap(down.from, down.to);
      std::swap(down.nic_out, down.nic_in);
      of_channel.push_back(up);
      of_channel.push_back(down);
    }
  }
  return flows;
}

std::vector<Load> Timer::State::loads(const std::vector<std::vector<NodeFlow>>& flows,
                                      ConnectionLoads& connections) {
  std::vector<Load> loads;
  for (const std::vector<NodeFlow>& of_channel : flows) {
    Load& load = loads.emplace_back();
    for (const NodeFlow& flow : of_channel) {
      // The weight of what goes at one rate in all, or so many bytes each.
      const double weight = flow.bytes.count() > 0 ? static_cast<double>(flow.bytes.count()) : 1.0;
      add_load(flow, weight, connections, load);
    }
    merge(load);
  }
  return loads;
}

std::vector<Load> Timer::loads(const CallPlan& plan, ConnectionLoads& connections) {
  State& state = *state_;
  if (state.communicator.ranks == 1) {
    return {};
  }
  switch (plan.algorithm) {
    case Algorithm::Ring:
      return state.loads(state.ring_flows(), connections);
    case Algorithm::Tree:
      return state.loads(state.tree_flows(), connections);
    case Algorithm::NvlsTree:
      return state.loads({state.nvls_tree_flows(plan)}, connections);
    case Algorithm::Pat:
      return state.loads({state.pat_flows(plan)}, connections);
    case Algorithm::CollNetDirect:
    case Algorithm::CollNetChain:
    case Algorithm::Nvls:
      break;  // In an NVSwitch, or in trees of switches that reduce.
  }
  return {};
}

void Timer::State::visit_exchange(Operation operation, int most_peers, const VisitPart& visit) {
  const int ranks = communicator.ranks;
  const bool is_rooted = operation == Operation::Scatter || operation == Operation::Gather;
  const int all = operation == Operation::SendReceive ? 1 : ranks - 1;
  const int peers = is_rooted ? all : std::min(all, most_peers);
  const int channels = std::max(1, communicator.p2p_channels);
  std::vector<int> nics;  // Indexed by rank.
  for (int rank = 0; rank < ranks; ++rank) {
    nics.push_back(static_cast<int>(complete.routing().nics(cluster.gpus[as_index(rank)]).size()));
  }
  const double stands_for = static_cast<double>(all) / peers;
  for (int rank = 0; rank < (is_rooted ? 1 : ranks); ++rank) {
    for (int peer = 0; peer < peers; ++peer) {
      const int distance = 1 + static_cast<int>(static_cast<std::int64_t>(peer) * all / peers);
      const int first = peer % channels;
      NodeFlow flow{.from = rank, .to = (rank + distance) % ranks, .channel = first};
      if (operation == Operation::Gather) {
        std::swap(flow.from, flow.to);
      }
      if (complete.node_of(flow.from) == complete.node_of(flow.to)) {
        visit(flow, stands_for);
        continue;
      }
      const int parts = std::clamp(std::max(nics[as_index(flow.from)], nics[as_index(flow.to)]), 1,
                                   std::max(1, communicator.p2p_channels_per_peer));
      for (int part = 0; part < parts; ++part) {
        flow.channel = (first + part) % channels;
        visit(flow, stands_for / parts);
      }
    }
  }
}

// Adds what every rank sends to each peer in turn, with the weight of one pair each.
Load Timer::State::exchange_load(Operation operation, int most_peers,
                                 ConnectionLoads& connections) {
  LoadSum sum(cluster.topology);
  Load load;
  visit_exchange(operation, most_peers, [&](const NodeFlow& part, double stands_for) {
    if (complete.node_of(part.from) == complete.node_of(part.to)) {
      add_load(part, stands_for, connections, load);
    } else {
      add_load(complete.pair_ends(part.from, part.to, part.channel), part.channel, stands_for,
               connections, load);
    }
    sum.add(load);
    load.clear();
  });
  return sum.total();
}

std::vector<Load> Timer::loads(Operation operation, ConnectionLoads& connections) {
  State& state = *state_;
  if (state.communicator.ranks == 1 ||
      (operation != Operation::SendReceive && operation != Operation::AllToAll)) {
    return {};
  }
  return {state.exchange_load(operation, kMostPeers, connections)};
}

void Timer::limit(const CallLimits& limits) {
  state_->limits = limits;
}

}  // namespace trainyard::nccl
