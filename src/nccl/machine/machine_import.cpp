// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/machine_import.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "nccl/machine/nic_groups.h"
#include "topology/cluster/server_kinds.h"
#include "topology/exchange/server_export.h"
#include "topology/graph/switch_graph.h"

namespace trainyard::nccl {
namespace {

// The NVSwitch that a server has in common with others, if it has.
std::optional<NodeId> shared_switch(const Topology& topology, const std::vector<NodeId>& gpus) {
  for (const NodeId gpu : gpus) {
    for (const LinkId link : topology.links_from(gpu)) {
      const NodeId target = topology.link(link).target;
      const Node& node = topology.node(target);
      if (node.kind == NodeKind::NvSwitch && !node.server) {
        return target;
      }
    }
  }
  return std::nullopt;
}

// Takes out the GPUs whose place among those of the server is not in `used`.
void keep_gpus(std::vector<NcclPci>& pcis, const std::vector<bool>& used) {
  for (NcclPci& pci : pcis) {
    std::erase_if(pci.gpus, [&](const NcclGpu& gpu) {
      return !used[static_cast<std::size_t>(gpu.rank.value_or(0))];
    });
    keep_gpus(pci.pcis, used);
  }
}

// Leaves of each group its first NIC, with the speed of all, and numbers those that are left.
// NICs stand in the file in the order of their indices.
class Grouping {
 public:
  explicit Grouping(const std::vector<std::vector<int>>& groups) : groups_(groups) {}

  void apply(NcclSystem& system) {
    for (NcclCpu& cpu : system.cpus) {
      apply(cpu.pcis);
    }
  }

 private:
  void apply(std::vector<NcclPci>& pcis) {
    std::vector<NcclPci> kept;
    for (NcclPci& pci : pcis) {
      apply(pci.pcis);
      if (pci.nics.empty() || joins(pci.nics.front())) {
        kept.push_back(std::move(pci));
      }
    }
    pcis = std::move(kept);
  }

  // Returns whether it is the first of its group, and if so makes it all of it.
  bool joins(NcclNic& nic) {
    const int index = nics_++;
    const auto group = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const auto& nics) { return nics.front() == index; });
    if (group == groups_.end()) {
      return false;
    }
    for (NcclNet& net : nic.nets) {
      net.dev = devices_++;
      net.speed = *net.speed * static_cast<int>(group->size());
    }
    return true;
  }

  const std::vector<std::vector<int>>& groups_;
  int nics_ = 0;
  int devices_ = 0;
};

NcclSystem system_of(const Cluster& cluster, const Catalogue& catalogue, const ServerKinds& kinds,
                     ServerId server) {
  const ServerOutline outline = server_outline(cluster.topology, server);
  NcclSystem system = to_nccl_xml(outline, catalogue);
  if (cluster.topology.server(server).grouped_nics) {
    Grouping(nic_groups(outline)).apply(system);
  }
  const std::vector<NodeId> in_use = kinds.gpus_of(server);
  std::vector<bool> used;
  for (const NodeId node : kinds.nodes_of(server)) {
    if (cluster.topology.node(node).kind == NodeKind::Gpu) {
      used.push_back(std::find(in_use.begin(), in_use.end(), node) != in_use.end());
    }
  }
  for (NcclCpu& cpu : system.cpus) {
    keep_gpus(cpu.pcis, used);
  }
  return system;
}

}  // namespace

ClusterSystems import_systems(const Cluster& cluster, const Catalogue& catalogue) {
  const Topology& topology = cluster.topology;
  const SwitchGraph graph(topology);
  const ServerKinds kinds(cluster, graph);
  ClusterSystems systems;
  std::map<NodeId, std::size_t> node_of_switch;
  int ranks = 0;
  for (std::uint32_t index = 0; index < topology.server_count(); ++index) {
    const ServerId server(index);
    const std::vector<NodeId> gpus = kinds.gpus_of(server);
    if (gpus.empty()) {
      continue;
    }
    const std::optional<NodeId> shared = shared_switch(topology, gpus);
    const bool joins = shared && node_of_switch.contains(*shared);
    if (!joins) {
      systems.nodes.push_back({.servers = {}, .first_rank = ranks});
    }
    // Servers of a domain follow one another, and so do their ranks.
    ClusterNode& node = systems.nodes.back();
    if (shared) {
      node_of_switch.emplace(*shared, systems.nodes.size() - 1);
    }
    node.servers.push_back(server);
    node.ranks += static_cast<int>(gpus.size());
    ranks += static_cast<int>(gpus.size());
  }
  std::map<std::vector<std::size_t>, std::size_t> known;
  std::map<std::size_t, NcclSystem> files;
  for (ClusterNode& node : systems.nodes) {
    std::vector<std::size_t> key;
    for (const ServerId server : node.servers) {
      key.push_back(kinds.kind_of(server));
    }
    const auto [place, is_new] = known.try_emplace(key, systems.kinds.size());
    node.kind = place->second;
    if (!is_new) {
      continue;
    }
    std::vector<NcclSystem>& kind = systems.kinds.emplace_back();
    for (const std::size_t server_kind : key) {
      auto file = files.find(server_kind);
      if (file == files.end()) {
        file = files
                   .emplace(server_kind,
                            system_of(cluster, catalogue, kinds, kinds.kinds()[server_kind].first))
                   .first;
      }
      kind.push_back(file->second);
    }
  }
  return systems;
}

}  // namespace trainyard::nccl
