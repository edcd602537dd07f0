// SPDX-License-Identifier: Apache-2.0
// Counts what a call puts on links that others may use as well: all but those between GPUs.
// Channels of rings and trees are loads of their own, as the data of one go at one rate all the
// way; what else is one load, whose messages all end together.
//
// Links that do not carry their whole rate (NICs, PCIe, host bridges, staging) count as if more
// crossed them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "nccl/timing/timing_state.h"
#include "nccl/tuning/point_to_point.h"
#include "network/sharing/load_sharing.h"
#include "sim/check.h"
#include "sim/ids.h"
#include "topology/graph/path.h"

namespace trainyard::nccl {
namespace {

// Limit of an exchange between many ranks: so many peers of each, spread evenly, represent all.
constexpr int kMaxPeers = 64;

double on_wire(Protocol protocol) {
  const auto [wire, data] = wire_ratio(protocol);
  return static_cast<double>(wire) / data;
}

// Returns what each connection of a ring or tree carries of the share of its channel.
double bytes_in_channel(const CallPlan& plan, Bytes share, int ranks) {
  const auto bytes = static_cast<double>(share.count());
  if (plan.algorithm == Algorithm::Tree) {
    return bytes;
  }
  return plan.function == Function::AllReduce ? 2.0 * bytes * (ranks - 1) / ranks
         : gathers_or_scatters(plan.function) ? bytes * (ranks - 1)
                                              : bytes;
}

// Adds so many times another load.
void add_times(const Load& more, double times, Load& load) {
  for (const LinkWeight& one : more) {
    if (times > 0.0) {
      load.push_back({.link = one.link, .weight = times * one.weight});
    }
  }
}

bool has_channels(const CallPlan& plan) {
  return plan.algorithm == Algorithm::Ring || plan.algorithm == Algorithm::Tree;
}

// In a chain nothing goes into the root of a broadcast, and nothing out of that of a reduction.
bool is_used(const CallPlan& plan, const NodeFlow& flow, int root) {
  return !(plan.function == Function::Broadcast && flow.to == root) &&
         !(plan.function == Function::Reduce && flow.from == root);
}

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

NodeFlow reversed(NodeFlow flow) {
  std::swap(flow.from, flow.to);
  std::swap(flow.nic_out, flow.nic_in);
  return flow;
}

// Adds the load of the path between two devices of a server.
void Timer::State::add_server_load(std::span<const LinkId> path, bool to_nic, double weight,
                                   LinkShares shares, Load& load) const {
  const Topology& topology = cluster.topology;
  double pcie_share = profile.pcie_rate;
  if (to_nic && path_distance(topology, path) > Distance::Pxb) {
    pcie_share *= profile.host_bridge_rate;
  }
  const bool is_through_host = is_staged(topology, path);
  for (const LinkId id : path) {
    const Link& link = topology.link(id);
    if (shares == LinkShares::All) {
      load.push_back({.link = id, .weight = weight});
      continue;
    }
    if (shares == LinkShares::AsReached &&
        (link.spec.kind == LinkKind::NvLink || link.spec.kind == LinkKind::Xgmi)) {
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

void Timer::State::add_load(const NodeFlow& flow, double weight, LinkShares shares,
                            ConnectionLoads& connections, Load& load) {
  const auto label = static_cast<std::uint32_t>(flow.channel);
  if (complete.node_of(flow.from) == complete.node_of(flow.to)) {
    std::vector<LinkId> path;
    if (complete.routing().route(cluster.gpus[as_index(flow.from)], cluster.gpus[as_index(flow.to)],
                                 label, path)) {
      add_server_load(path, false, weight, shares, load);
    }
    return;
  }
  const NetworkEnds ends = complete.ends(flow);
  add_server_load(ends.outward, true, weight, shares, load);
  add_server_load(ends.inward, true, weight, shares, load);
  const std::vector<ConnectionSpec> pairs = complete.queue_pairs(ends.out, ends.in, label);
  const std::size_t before = load.size();
  for (const ConnectionSpec& pair : pairs) {
    CHECK(connections.add(pair, weight / static_cast<double>(pairs.size()), load),
          "a wire that was connected has a way");
  }
  for (std::size_t index = before; index < load.size() && shares != LinkShares::All; ++index) {
    const Link& link = cluster.topology.link(load[index].link);
    if (cluster.topology.node(link.source).server || cluster.topology.node(link.target).server) {
      load[index].weight /= network_rate;
    }
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
      of_channel.push_back(up);
      of_channel.push_back(reversed(up));
    }
  }
  return flows;
}

// A part to each other rank, and of sums one back.
std::vector<NodeFlow> Timer::State::pair_flows(const CallPlan& plan) const {
  const int ranks = communicator.ranks;
  const Bytes of_pair =
      plan.function == Function::AllReduce ? Bytes(2 * plan.bytes.count() / ranks) : plan.bytes;
  std::vector<NodeFlow> flows;
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) {
      if (from != to) {
        flows.push_back({.from = from, .to = to, .bytes = of_pair, .is_pair = true});
      }
    }
  }
  return flows;
}

std::vector<Load> Timer::State::loads(const std::vector<std::vector<NodeFlow>>& flows,
                                      LinkShares shares, ConnectionLoads& connections) {
  std::vector<Load> loads;
  for (const std::vector<NodeFlow>& of_channel : flows) {
    Load& load = loads.emplace_back();
    for (const NodeFlow& flow : of_channel) {
      // The weight of what goes at one rate in all, or so many bytes each.
      const double weight = flow.bytes.count() > 0 ? static_cast<double>(flow.bytes.count()) : 1.0;
      add_load(flow, weight, shares, connections, load);
    }
    merge(load);
  }
  return loads;
}

std::vector<std::vector<NodeFlow>> Timer::State::flows_of(const CallPlan& plan) const {
  if (communicator.ranks == 1) {
    return {};
  }
  switch (plan.algorithm) {
    case Algorithm::Ring:
      return ring_flows();
    case Algorithm::Tree:
      return tree_flows();
    case Algorithm::NvlsTree:
      return {nvls_tree_flows(plan)};
    case Algorithm::Pat:
      return {pat_flows(plan)};
    case Algorithm::AllPairs:
      return {pair_flows(plan)};
    case Algorithm::CollNetDirect:
    case Algorithm::CollNetChain:
    case Algorithm::Nvls:
      break;  // In an NVSwitch, or in trees of switches that reduce.
  }
  return {};
}

std::vector<Load> Timer::loads(const CallPlan& plan, ConnectionLoads& connections) {
  return state_->loads(state_->flows_of(plan), State::LinkShares::AsReached, connections);
}

const std::vector<Load>& Timer::State::byte_traffic(const CallPlan& plan, int root) {
  const bool by_channel = has_channels(plan);
  const auto [known, is_new] =
      known_traffic.try_emplace({static_cast<int>(plan.algorithm), static_cast<int>(plan.function),
                                 by_channel ? 0 : plan.channels, root});
  if (!is_new) {
    return known->second;
  }
  // So many that what each flow has of them is rounded by nothing.
  CallPlan many = plan;
  many.bytes = Bytes(std::int64_t{1} << 40);
  ConnectionLoads& connections = own_connections();
  for (const std::vector<NodeFlow>& flows : flows_of(many)) {
    Load& load = known->second.emplace_back();
    for (const NodeFlow& flow : flows) {
      if (is_used(plan, flow, root)) {
        const double bytes = by_channel ? 1.0
                                        : static_cast<double>(flow.bytes.count()) /
                                              static_cast<double>(many.bytes.count());
        add_load(flow, bytes, LinkShares::All, connections, load);
      }
    }
    merge(load);
  }
  return known->second;
}

Load Timer::traffic(const CallPlan& plan, int root) {
  const std::vector<Load>& of_byte = state_->byte_traffic(plan, root);
  if (of_byte.empty()) {
    return {};
  }
  Load load;
  if (!has_channels(plan)) {
    add_times(of_byte.front(), static_cast<double>(plan.bytes.count()) * on_wire(plan.protocol),
              load);
    return load;
  }
  const std::vector<ChannelPart> shares = channel_shares(plan);
  for (std::size_t channel = 0; channel < shares.size(); ++channel) {
    const double bytes = bytes_in_channel(plan, shares[channel].bytes, state_->communicator.ranks);
    add_times(of_byte[channel % of_byte.size()], bytes * on_wire(plan.protocol), load);
  }
  merge(load);
  return load;
}

void Timer::State::visit_exchange(Operation operation, int max_peers, const VisitPart& visit) {
  const int ranks = communicator.ranks;
  const bool is_rooted = operation == Operation::Scatter || operation == Operation::Gather;
  const int all = operation == Operation::SendReceive ? 1 : ranks - 1;
  const int peers = is_rooted ? all : std::min(all, max_peers);
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
      NodeFlow flow{
          .from = rank, .to = (rank + distance) % ranks, .channel = first, .is_pair = true};
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
Load Timer::State::exchange_load(Operation operation, int max_peers, LinkShares shares,
                                 ConnectionLoads& connections) {
  LoadSum sum(cluster.topology);
  Load load;
  visit_exchange(operation, max_peers, [&](const NodeFlow& part, double stands_for) {
    add_load(part, stands_for, shares, connections, load);
    sum.add(load);
    load.clear();
  });
  return sum.total();
}

std::vector<Load> Timer::State::loads(Operation operation, LinkShares shares,
                                      ConnectionLoads& connections) {
  if (communicator.ranks == 1) {
    return {};
  }
  return {exchange_load(operation, kMaxPeers, shares, connections)};
}

std::vector<Load> Timer::loads(Operation operation, ConnectionLoads& connections) {
  return state_->loads(operation, State::LinkShares::AsReached, connections);
}

const std::vector<Load>& Timer::State::byte_traffic(Operation operation) {
  const auto [known, is_new] = known_traffic.try_emplace({-1, static_cast<int>(operation), 0, 0});
  if (is_new) {
    ConnectionLoads& connections = own_connections();
    std::array<LoadSum, 2> sums{LoadSum(cluster.topology), LoadSum(cluster.topology)};
    visit_exchange(operation, kMaxPeers, [&](const NodeFlow& part, double stands_for) {
      const bool is_far = complete.node_of(part.from) != complete.node_of(part.to);
      Load load;
      add_load(part, stands_for, LinkShares::All, connections, load);
      sums[is_far ? 1 : 0].add(load);
    });
    known->second = {sums[0].total(), sums[1].total()};
  }
  return known->second;
}

Load Timer::traffic(Operation operation, Bytes size) {
  State& state = *state_;
  const int ranks = state.communicator.ranks;
  if (ranks == 1) {
    return {};
  }
  const Bytes of_pair(operation == Operation::SendReceive ? size.count() : size.count() / ranks);
  const std::vector<Load>& of_byte = state.byte_traffic(operation);
  Load load;
  for (const bool network : {false, true}) {
    const Protocol protocol =
        plan_point_to_point(state.communicator, state.environment, of_pair, network).protocol;
    add_times(of_byte[network ? 1 : 0], static_cast<double>(of_pair.count()) * on_wire(protocol),
              load);
  }
  merge(load);
  return load;
}

void Timer::limit(const CallLimits& limits) {
  state_->limits = limits;
}

}  // namespace trainyard::nccl
