// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/nic_devices.h"

#include <algorithm>
#include <cstddef>

#include "nccl/machine/nic_groups.h"
#include "sim/check.h"
#include "sim/ids.h"
#include "topology/exchange/server_export.h"

namespace trainyard::nccl {

bool merges_ports(const Environment& environment, Version version) {
  // NCCL_IB_MERGE_NICS came with 2.20 (src/transport/net_ib.cc).
  return version >= Version::V2_20 && environment.ib_merge_nics && environment.net_merge_ports &&
         !environment.ib_disable && environment.network != "Socket";
}

NicDevices::NicDevices(const Topology& topology, const std::vector<std::vector<ServerId>>& servers,
                       const std::vector<int>& kinds, bool merges)
    : topology_(topology), merges_(merges), numbers_(servers.size()) {
  const bool network = has_network(topology);
  std::vector<std::vector<NodeId>> live(topology.server_count());
  for (std::uint32_t id = 0; id < topology.node_count(); ++id) {
    const Node& node = topology.node(NodeId(id));
    if (node.kind == NodeKind::Nic && node.server && is_live_nic(topology, NodeId(id), network)) {
      live[node.server->value()].push_back(NodeId(id));
    }
  }
  // Known by kind of node and server in it.
  std::map<std::pair<int, std::size_t>, std::vector<std::vector<int>>> known;
  for (std::size_t node = 0; node < servers.size(); ++node) {
    for (std::size_t place = 0; place < servers[node].size(); ++place) {
      const ServerId server = servers[node][place];
      const std::vector<NodeId>& nics = live[server.value()];
      if (!topology.server(server).grouped_nics) {
        add(nics, nullptr, static_cast<int>(node));
        continue;
      }
      const auto [groups, fresh] = known.try_emplace({kinds[node], place});
      if (fresh) {
        groups->second = nic_groups(server_outline(topology, server));
      }
      add(nics, &groups->second, static_cast<int>(node));
    }
  }
}

void NicDevices::add(const std::vector<NodeId>& nics, const std::vector<std::vector<int>>* groups,
                     int node) {
  std::vector<NodeId> standing = groups == nullptr ? nics : std::vector<NodeId>{};
  for (std::size_t group = 0; groups != nullptr && group < groups->size(); ++group) {
    std::vector<NodeId> all;
    for (const int index : (*groups)[group]) {
      all.push_back(nics[as_index(index)]);
    }
    for (const NodeId nic : all) {
      groups_[nic] = all;
    }
    standing.push_back(all.front());
  }
  std::vector<std::optional<NicDevice>>& numbers = numbers_[as_index(node)];
  for (const NodeId nic : standing) {
    const std::size_t first = numbers.size();
    numbers.resize(first + as_index(ports_of(nic)));
    for (const NicDevice& device : devices_of(nic)) {
      numbers[first + as_index(device.first_port)] = device;
    }
  }
}

int NicDevices::ports_of(NodeId nic) const {
  return std::max<int>(1, topology_.node(nic).ports);
}

const NicDevice& NicDevices::device(int node, int number) const {
  const std::vector<std::optional<NicDevice>>& numbers = numbers_[as_index(node)];
  CHECK(number >= 0 && as_index(number) < numbers.size(), "no NIC of the node has this number");
  CHECK(numbers[as_index(number)].has_value(), "this port is part of another NIC");
  return *numbers[as_index(number)];
}

std::vector<NicDevice> NicDevices::devices_of(NodeId nic) const {
  if (const auto group = groups_.find(nic); group != groups_.end()) {
    nic = group->second.front();
  }
  const int ports = ports_of(nic);
  const int max = merges_ ? kMaxMergedPorts : 1;
  std::vector<NicDevice> devices;
  for (int port = 0; port < ports; port += max) {
    devices.push_back({.nic = nic, .first_port = port, .ports = std::min(max, ports - port)});
  }
  return devices;
}

std::vector<NodeId> NicDevices::group_of(NodeId nic) const {
  const auto group = groups_.find(nic);
  return group == groups_.end() ? std::vector<NodeId>{nic} : group->second;
}

// Where a NIC has fewer cables than ports, each carries as many ports, or almost.
std::vector<NicDevices::Lane> NicDevices::lanes(const NicDevice& device) const {
  const std::vector<NodeId> group = group_of(device.nic);
  const auto links = topology_.links_from(device.nic);
  const auto cables = static_cast<int>(std::ranges::count_if(
      links, [&](LinkId id) { return topology_.link(id).spec.kind == LinkKind::Network; }));
  const int ports = ports_of(device.nic);
  std::vector<Lane> lanes;
  if (group.size() > 1 || ports == 1 || cables < 2) {
    for (const NodeId nic : group) {
      lanes.push_back({.nic = nic});
    }
    return lanes;
  }
  const int first = device.first_port * cables / ports;
  const int end = ((device.first_port + device.ports) * cables + ports - 1) / ports;
  for (int cable = first; cable < end; ++cable) {
    lanes.push_back({.nic = device.nic, .cable = static_cast<std::uint32_t>(cable)});
  }
  return lanes;
}

std::vector<ConnectionSpec> NicDevices::queue_pairs(const NicDevice& from, const NicDevice& to,
                                                    std::uint32_t label) const {
  const std::vector<Lane> out = lanes(from);
  const std::vector<Lane> in = lanes(to);
  std::vector<ConnectionSpec> pairs;
  for (std::size_t lane = 0; lane < std::max(out.size(), in.size()); ++lane) {
    const Lane& source = out[lane % out.size()];
    const Lane& target = in[lane % in.size()];
    ConnectionSpec pair{.source = source.nic, .target = target.nic, .flow_label = label};
    if (source.cable || target.cable) {
      pair.nic_turns = {.source = source.cable.value_or(label),
                        .target = target.cable.value_or(label)};
    }
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace trainyard::nccl
