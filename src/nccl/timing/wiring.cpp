// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/wiring.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "nccl/machine/network_software.h"
#include "nccl/types/release.h"
#include "network/flow/max_min.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/ids.h"
#include "topology/graph/path.h"

namespace trainyard::nccl {
namespace {

// The place of `link` among the links of the same two ends' kind that leave its source.
std::int64_t ordinal(const Topology& topology, LinkId link) {
  const auto& links = topology.links_from(topology.link(link).source);
  return std::ranges::find(links, link) - links.begin();
}

// The link of the other direction.
std::optional<LinkId> opposite(const Topology& topology, LinkId link) {
  for (const LinkId other : topology.links_from(topology.link(link).target)) {
    if (topology.link(other).target == topology.link(link).source) {
      return other;
    }
  }
  return std::nullopt;
}

Transport transport_of(const Topology& topology, const std::vector<LinkId>& path) {
  if (is_staged(topology, path)) {
    return Transport::Host;
  }
  const bool leaves_nvlink = std::ranges::any_of(path, [&](LinkId link) {
    const LinkKind kind = topology.link(link).spec.kind;
    return kind == LinkKind::Pcie || kind == LinkKind::Socket;
  });
  return leaves_nvlink ? Transport::Pcie : Transport::NvLink;
}

}  // namespace

Wiring::Wiring(const Cluster& cluster, const Communicator& communicator,
               const Environment& environment, Routing* routing)
    : cluster_(cluster),
      communicator_(communicator),
      environment_(environment),
      routing_(routing != nullptr ? *routing
                                  : own_routing_.emplace(cluster.topology, cluster.routing)),
      places_(cluster.topology.node_count()),
      own_nics_(as_index(communicator.ranks)),
      sending_(as_index(communicator.ranks)),
      ways_(cluster.topology.node_count()),
      gpus_of_server_(cluster.topology.server_count()) {
  std::vector<int> node_of_server(cluster.topology.server_count(), -1);
  std::vector<int> server_in_node(cluster.topology.server_count(), 0);
  std::vector<std::vector<ServerId>> servers(as_index(communicator.nodes));
  int node = 0;
  for (int rank = 0; rank < communicator.ranks; ++rank) {
    while (rank >= communicator.first_rank[as_index(node + 1)]) {
      ++node;
    }
    node_of_.push_back(node);
    const auto server = cluster.topology.node(cluster.gpus[as_index(rank)]).server;
    std::vector<ServerId>& of_node = servers[as_index(node)];
    if (!server || (!of_node.empty() && of_node.back() == *server)) {
      continue;
    }
    // NCCL may make several nodes of a server: each has all of its NICs.
    if (node_of_server[server->value()] < 0) {
      node_of_server[server->value()] = node;
      server_in_node[server->value()] = static_cast<int>(of_node.size());
    }
    of_node.push_back(*server);
  }
  for (const NodeId gpu : cluster.gpus) {
    if (const auto server = cluster.topology.node(gpu).server) {
      gpus_of_server_[server->value()].push_back(gpu);
    }
  }
  std::vector<int> indices(cluster.topology.server_count(), 0);
  for (std::uint32_t id = 0; id < cluster.topology.node_count(); ++id) {
    if (const auto server = cluster.topology.node(NodeId(id)).server) {
      places_[id] = {.node = node_of_server[server->value()],
                     .server = server_in_node[server->value()],
                     .index = indices[server->value()]++};
    }
  }
  devices_.emplace(cluster.topology, servers, communicator.node_kind,
                   merges_ports(environment, communicator.version));
  ring_period_ = find_ring_period();
  fold(ring_period_);
}

std::size_t Wiring::ring_begin(const std::vector<int>& order) const {
  if (communicator_.nodes == 1) {
    return 0;
  }
  std::size_t begin = 0;
  while (node_of(order[begin]) != 0 ||
         node_of(order[(begin + order.size() - 1) % order.size()]) == 0) {
    ++begin;
  }
  return begin;
}

int Wiring::find_ring_period() const {
  const int nodes = communicator_.nodes;
  // The local orders of each node, over all channels.
  std::vector<std::vector<int>> orders(as_index(nodes));
  for (const RingChannel& ring : communicator_.rings) {
    const std::size_t begin = ring_begin(ring.order);
    for (std::size_t i = 0; i < ring.order.size(); ++i) {
      const int rank = ring.order[(begin + i) % ring.order.size()];
      orders[as_index(node_of(rank))].push_back(local_rank(rank));
    }
  }
  for (const int period : {1, 2}) {
    // In an odd number of nodes no two follow one another all the way round.
    bool repeats = period < nodes && nodes % period == 0;
    for (int node = period; node < nodes && repeats; ++node) {
      repeats = orders[as_index(node)] == orders[as_index(node - period)] &&
                communicator_.node_kind[as_index(node)] ==
                    communicator_.node_kind[as_index(node - period)];
    }
    if (repeats) {
      return period;
    }
  }
  return nodes;
}

void Wiring::fold(int period) {
  CHECK(period >= 1 && period <= communicator_.nodes, "no such period");
  period_ = period;
  port_numbers_.clear();
  ports_.clear();
}

std::optional<std::uint32_t> Wiring::port(LinkId id, const JointRates& joint) {
  const Topology& topology = cluster_.topology;
  const Link& link = topology.link(id);
  const Place& source = places_[link.source.value()];
  const Place& target = places_[link.target.value()];
  if (source.node < 0 && target.node < 0) {
    return std::nullopt;  // Between switches of the fabric.
  }
  // A link is known by the device of a server that it leaves, or else by that it leads to.
  const bool leaves = source.node >= 0;
  const std::optional<LinkId> known = leaves ? id : opposite(topology, id);
  const Place& place = leaves ? source : target;
  const std::vector<std::int64_t> key = {place.node % period_, place.server, place.index,
                                         known ? ordinal(topology, *known) : -1, leaves ? 1 : 0};
  const auto [entry, fresh] =
      port_numbers_.try_emplace(key, static_cast<std::uint32_t>(ports_.size()));
  if (fresh) {
    // A NIC that represents a group.
    const std::size_t nics =
        std::max(devices_->group_of(link.source).size(), devices_->group_of(link.target).size());
    const auto of_cables = joint.find(id);
    ports_.push_back({.rate = of_cables != joint.end()
                                  ? of_cables->second
                                  : Bandwidth(link.spec.bandwidth.bits_per_second() *
                                              static_cast<std::int64_t>(nics)),
                      .kind = link.spec.kind});
  }
  return entry->second;
}

NicDevice Wiring::nic(int rank, std::optional<int> number, int channel) {
  if (number) {
    return devices_->device(node_of(rank), *number);
  }
  std::vector<NicDevice>& own = own_nics_[as_index(rank)];
  if (own.empty()) {
    const NodeId gpu = cluster_.gpus[as_index(rank)];
    for (const NodeId nic : routing_.nics(gpu)) {
      const std::vector<NicDevice> devices = devices_->devices_of(nic);
      own.insert(own.end(), devices.begin(), devices.end());
    }
    if (own.empty()) {
      throw_unreachable(cluster_.topology, gpu, gpu);
    }
  }
  return own[as_index(channel) % own.size()];
}

// Ways stay where they are when others are added.
template <typename Find>
std::span<const LinkId> Wiring::way(NodeId from, NodeId to, const Find& find) {
  if (from == to) {
    return {};
  }
  std::vector<ServerWay>& known = ways_[from.value()];
  auto found = std::ranges::find(known, to, &ServerWay::first);
  if (found == known.end()) {
    found = known.emplace(found, to, find());
  }
  return found->second;
}

std::span<const LinkId> Wiring::way_to_nic(NodeId gpu, NodeId nic) {
  return way(gpu, nic, [&] { return find_way_to_nic(gpu, nic); });
}

std::span<const LinkId> Wiring::way_from_nic(NodeId nic, NodeId gpu) {
  return way(nic, gpu, [&] {
    std::vector<LinkId> links;
    if (!routing_.route(nic, gpu, 0, links)) {
      throw_unreachable(cluster_.topology, nic, gpu);
    }
    return links;
  });
}

bool Wiring::hands_over() const {
  return release(communicator_.version).hands_over && !environment_.pxn_disable;
}

// From a GPU to a NIC that is not near it, data go through the GPU of the node that is (PXN).
std::vector<LinkId> Wiring::find_way_to_nic(NodeId gpu, NodeId nic) {
  std::vector<LinkId> part;
  if (!routing_.route(gpu, nic, 0, part)) {
    throw_unreachable(cluster_.topology, gpu, nic);
  }
  const Distance own = path_distance(cluster_.topology, part);
  const auto server = cluster_.topology.node(gpu).server;
  if (own > Distance::Pxb && server && hands_over()) {
    for (const NodeId other : gpus_of_server_[server->value()]) {
      std::vector<LinkId> first;
      std::vector<LinkId> second;
      if (other == gpu || !routing_.route(gpu, other, 0, first) ||
          !routing_.route(other, nic, 0, second)) {
        continue;
      }
      if (transport_of(cluster_.topology, first) == Transport::NvLink &&
          path_distance(cluster_.topology, second) <= Distance::Pxb) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
      }
    }
  }
  return part;
}

Wire Wiring::finish(Transport transport, const std::vector<LinkId>& path, const JointRates& joint) {
  Wire wire;
  wire.transport = transport;
  wire.latency = path_latency(cluster_.topology, path);
  wire.staged = is_staged(cluster_.topology, path);
  for (const LinkId link : path) {
    const NodeKind kind = cluster_.topology.node(cluster_.topology.link(link).target).kind;
    wire.switches += kind == NodeKind::NvSwitch ? 1 : 0;
    if (const auto number = port(link, joint)) {
      wire.ports.push_back(*number);
      const auto server = cluster_.topology.node(cluster_.topology.link(link).source).server;
      if (wire.staged && server && ports_[*number].kind != LinkKind::Network) {
        ports_[*number].staging_share = cluster_.topology.server(*server).staging_share;
      }
    }
  }
  return wire;
}

void Wiring::mark_host_bridge(std::span<const LinkId> path) {
  if (path_distance(cluster_.topology, path) <= Distance::Pxb) {
    return;
  }
  for (const LinkId link : path) {
    if (const auto number = port(link, {}); number && ports_[*number].kind == LinkKind::Pcie) {
      ports_[*number].crosses_host_bridge = true;
    }
  }
}

Wire Wiring::connect(const NodeFlow& flow) {
  if (node_of(flow.from) != node_of(flow.to)) {
    return connect_nodes(flow);
  }
  const NodeId source = cluster_.gpus[as_index(flow.from)];
  const NodeId target = cluster_.gpus[as_index(flow.to)];
  std::vector<LinkId> path;
  if (!routing_.route(source, target, static_cast<std::uint32_t>(flow.channel), path)) {
    throw_unreachable(cluster_.topology, source, target);
  }
  return finish(transport_of(cluster_.topology, path), path);
}

NetworkEnds Wiring::ends(const NodeFlow& flow) {
  const int sender = flow.is_pair ? sending_rank(flow.from, flow.to) : flow.from;
  const NicDevice out = nic(sender, flow.nic_out, flow.channel);
  const NicDevice in = nic(flow.to, flow.nic_in, flow.channel);
  return {.out = out,
          .in = in,
          .outward = way_to_nic(cluster_.gpus[as_index(flow.from)], out.nic),
          .inward = way_from_nic(in.nic, cluster_.gpus[as_index(flow.to)])};
}

int Wiring::sending_rank(int from, int to) {
  const std::vector<int>& first = communicator_.first_rank;
  const int relay = first[as_index(node_of(from))] + local_rank(to);
  if (!hands_over() || environment_.p2p_pxn_level < 2 || relay == from ||
      relay >= first[as_index(node_of(from)) + 1]) {
    return from;
  }
  std::vector<std::optional<int>>& known = sending_[as_index(from)];
  known.resize(as_index(communicator_.max_ranks_per_node()));
  std::optional<int>& sender = known[as_index(local_rank(to))];
  if (!sender) {
    sender = find_sending_rank(from, relay);
  }
  return *sender;
}

int Wiring::find_sending_rank(int from, int relay) {
  const NodeId gpu = cluster_.gpus[as_index(relay)];
  std::vector<LinkId> path;
  if (!routing_.route(cluster_.gpus[as_index(from)], gpu, 0, path) ||
      transport_of(cluster_.topology, path) != Transport::NvLink) {
    return from;
  }
  const NodeId its_nic = nic(relay, std::nullopt, 0).nic;
  if (gpu != its_nic && (!routing_.route(gpu, its_nic, 0, path) ||
                         path_distance(cluster_.topology, path) > Distance::Pxb)) {
    return from;
  }
  return relay;
}

void Wiring::append_route(const ConnectionSpec& pair, std::vector<LinkId>& path) {
  std::vector<LinkId> part;
  if (!routing_.route(pair.source, pair.target, pair.flow_label, part, 0, pair.nic_turns)) {
    const Topology& topology = cluster_.topology;
    const Node& source = topology.node(pair.source);
    const Node& target = topology.node(pair.target);
    if (source.kind == NodeKind::Nic && target.kind == NodeKind::Nic) {
      throw ConfigError(fmt::format(
          "no path leads from {} to {}, between which NCCL has a channel: it takes any NIC to "
          "reach any other; join them by a switch, give each server one NIC (of several ports), or "
          "use --runtime plain",
          source.name, target.name));
    }
    throw_unreachable(topology, pair.source, pair.target);
  }
  path.insert(path.end(), part.begin(), part.end());
}

// The first cable represents all that the NIC at its end uses.
Wiring::JointRates Wiring::joint_rates(const std::vector<ConnectionSpec>& pairs) {
  std::set<LinkId> first;
  std::set<LinkId> last;
  std::optional<std::pair<LinkId, LinkId>> standing;
  for (const ConnectionSpec& pair : pairs) {
    if (!pair.nic_turns || pair.source == pair.target) {
      return {};
    }
    std::vector<LinkId> path;
    append_route(pair, path);
    first.insert(path.front());
    last.insert(path.back());
    standing = standing.value_or(std::pair(path.front(), path.back()));
  }
  const auto sum = [&](const std::set<LinkId>& cables) {
    std::int64_t rate = 0;
    for (const LinkId id : cables) {
      rate += cluster_.topology.link(id).spec.bandwidth.bits_per_second();
    }
    return Bandwidth(rate);
  };
  return {{standing->first, sum(first)}, {standing->second, sum(last)}};
}

bool Wiring::is_driven_by_verbs(const NicDevice& device) const {
  const Topology& topology = cluster_.topology;
  const std::string& part = topology.parts()[topology.node(device.nic).part];
  return nccl::is_driven_by_verbs(cluster_.catalogue.base_of(part), environment_);
}

std::vector<ConnectionSpec> Wiring::queue_pairs(const NicDevice& from, const NicDevice& to,
                                                std::uint32_t label) const {
  constexpr std::uint32_t kChannels = 1 << 16;  // More than there are.
  std::vector<ConnectionSpec> pairs = devices_->queue_pairs(from, to, label);
  const std::size_t ports = pairs.size();
  const int each = is_driven_by_verbs(from) ? environment_.ib_queue_pairs : 1;
  for (std::size_t index = ports; index < ports * as_index(each); ++index) {
    // Another UDP source port, by which ECMP finds it another way, on the same cables.
    ConnectionSpec pair = pairs[index % ports];
    pair.flow_label += kChannels * static_cast<std::uint32_t>(index / ports);
    if (!pair.nic_turns) {
      pair.nic_turns = {.source = label, .target = label};
    }
    pairs.push_back(pair);
  }
  return pairs;
}

Wire Wiring::connect_nodes(const NodeFlow& flow) {
  const NetworkEnds way = ends(flow);
  const auto label = static_cast<std::uint32_t>(flow.channel);
  const std::vector<ConnectionSpec> pairs = queue_pairs(way.out, way.in, label);
  std::vector<LinkId> path(way.outward.begin(), way.outward.end());
  std::vector<LinkId> between;
  append_route(pairs.front(), between);
  path.insert(path.end(), between.begin(), between.end());
  path.insert(path.end(), way.inward.begin(), way.inward.end());
  Wire wire = finish(Transport::Network, path, joint_rates(pairs));
  wire.latency = path_latency(cluster_.topology, between);
  mark_host_bridge(way.outward);
  mark_host_bridge(way.inward);
  wire.sender = way.out;
  wire.receiver = way.in;
  wire.flow_label = label;
  // A cable from NIC to NIC is a port of its sender alone.
  wire.receiving_ports =
      static_cast<std::uint32_t>(way.inward.size() + (between.size() > 1 ? 1 : 0));
  return wire;
}

std::vector<Bandwidth> Wiring::fabric_shares(std::span<const Wire> wires) {
  const Topology& topology = cluster_.topology;
  // Switches that choose by load, or packet by packet, spread over all ways what one way lacks.
  if (routing_.policy().spreads()) {
    return std::vector<Bandwidth>(wires.size(), kMaxBandwidth);
  }
  std::vector<Bandwidth> capacities;
  std::map<std::uint32_t, MaxMinSolver::LinkIndex> indices;  // Indices by LinkId.
  std::vector<std::vector<MaxMinSolver::LinkIndex>> paths;
  std::vector<LinkId> path;
  const auto add_path = [&](const ConnectionSpec& pair) {
    paths.emplace_back();
    path.clear();
    append_route(pair, path);
    for (const LinkId id : path) {
      const Link& link = topology.link(id);
      if (topology.node(link.source).server || topology.node(link.target).server) {
        continue;
      }
      const auto [entry, fresh] =
          indices.try_emplace(id.value(), static_cast<MaxMinSolver::LinkIndex>(capacities.size()));
      if (fresh) {
        capacities.push_back(link.spec.bandwidth);
      }
      paths.back().push_back(entry->second);
    }
  };
  std::vector<std::size_t> lanes;  // Paths of each wire.
  for (const Wire& wire : wires) {
    const std::vector<ConnectionSpec> pairs =
        queue_pairs(wire.sender, wire.receiver, wire.flow_label);
    lanes.push_back(pairs.size());
    std::for_each(pairs.begin(), pairs.end(), add_path);
  }
  MaxMinSolver solver(capacities);
  std::vector<std::optional<MaxMinSolver::ClassIndex>> classes;
  for (const std::vector<MaxMinSolver::LinkIndex>& links : paths) {
    classes.emplace_back();
    if (!links.empty()) {
      classes.back() = solver.add_class(links);
      solver.set_multiplicity(*classes.back(), 1);
    }
  }
  static_cast<void>(solver.solve());
  std::vector<Bandwidth> shares;
  auto next = classes.begin();
  for (const std::size_t count : lanes) {
    // The slowest of them holds up the others.
    std::int64_t min = kMaxBandwidth.bits_per_second() / static_cast<std::int64_t>(count);
    for (std::size_t lane = 0; lane < count; ++lane, ++next) {
      if (*next) {
        const auto rate = static_cast<std::int64_t>(solver.rate(**next) >> kFlowRateFractionBits);
        min = std::min(min, rate);
      }
    }
    shares.emplace_back(min * static_cast<std::int64_t>(count));
  }
  return shares;
}

}  // namespace trainyard::nccl
