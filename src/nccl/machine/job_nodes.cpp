// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/job_nodes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "nccl/machine/gpu_ranks.h"
#include "nccl/machine/nic_groups.h"
#include "nccl/types/gpu_generation.h"
#include "sim/config_error.h"
#include "sim/ids.h"
#include "topology/cluster/server_kinds.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/server_export.h"
#include "topology/graph/switch_graph.h"

namespace trainyard::nccl {
namespace {

int gpu_count(const NcclSystem& system) {
  std::size_t count = 0;
  visit_devices(system, [&count](const NcclPci& device) { count += device.gpus.size(); });
  return static_cast<int>(count);
}

// The GPUs of the first ranks.
NcclSystem first_gpus(const NcclSystem& system, int count) {
  std::vector<NcclSystem> servers{system};
  const std::map<const NcclGpu*, int> ranks = number_gpus(servers);
  // Each GPU is looked up where it stands; others move up behind that.
  visit_devices(servers.front(), [&](NcclPci& device) {
    std::erase_if(device.gpus, [&](const NcclGpu& gpu) { return ranks.at(&gpu) >= count; });
  });
  return std::move(servers.front());
}

// Returns whether all switches that its NICs are plugged into add up (SHARP).
bool fabric_reduces(const Topology& topology) {
  bool any = false;
  for (std::uint32_t id = 0; id < topology.node_count(); ++id) {
    if (topology.node(NodeId(id)).kind != NodeKind::Nic) {
      continue;
    }
    for (const LinkId link : topology.links_from(NodeId(id))) {
      const Node& peer = topology.node(topology.link(link).target);
      if (peer.server) {
        continue;
      }
      if (!peer.in_network_reduction) {
        return false;
      }
      any = true;
    }
  }
  return any;
}

// NCCL's file says which ports a plugin for such switches can use. Without NCCL_COLLNET_ENABLE
// nothing asks for it.
void mark_reducing(NcclSystem& system) {
  visit_devices(system, [](NcclPci& device) {
    for (NcclNic& nic : device.nics) {
      for (NcclNet& net : nic.nets) {
        net.coll = 1;
      }
    }
  });
}

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

// Returns the servers that one NVLink domain joins, and others alone, in the order of their ranks.
std::vector<std::vector<ServerId>> joined_servers(const Cluster& cluster,
                                                  const ServerKinds& kinds) {
  std::vector<std::vector<ServerId>> joined;
  std::set<NodeId> known;
  for (std::uint32_t index = 0; index < cluster.topology.server_count(); ++index) {
    const ServerId server(index);
    const std::vector<NodeId> gpus = kinds.gpus_of(server);
    if (gpus.empty()) {
      continue;
    }
    const std::optional<NodeId> shared = shared_switch(cluster.topology, gpus);
    if (!shared || known.insert(*shared).second) {
      joined.emplace_back();
    }
    joined.back().push_back(server);  // Servers of a domain follow one another.
  }
  return joined;
}

// Leaves of each group its first NIC, with the speed of all, and numbers those that are left.
// NICs stand in the file in the order of their indices.
class NicGrouping {
 public:
  explicit NicGrouping(const std::vector<std::vector<int>>& groups) : groups_(groups) {}

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

const NetworkSoftware* software_of(const std::vector<OutlineBranch>& branches) {
  for (const OutlineBranch& branch : branches) {
    const NetworkSoftware* const found =
        branch.kind == NodeKind::Nic ? network_software(branch.part) : software_of(branch.children);
    if (found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

// Returns the rules of the plugin for the NICs of a server.
const NetworkSoftware* software_of(const ServerOutline& server) {
  for (const std::vector<OutlineBranch>& socket : server.sockets) {
    if (const NetworkSoftware* const found = software_of(socket); found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

void set_latency(NcclSystem& system, double microseconds) {
  visit_devices(system, [microseconds](NcclPci& device) {
    for (NcclNic& nic : device.nics) {
      for (NcclNet& net : nic.nets) {
        net.latency = microseconds;
      }
    }
  });
}

NcclSystem system_of(const Cluster& cluster, const ServerKinds& kinds, ServerId server,
                     const NetworkSoftware*& software) {
  const ServerOutline outline = server_outline(cluster.topology, server);
  NcclSystem system = to_nccl_xml(outline, cluster.catalogue);
  if (const NetworkSoftware* const own = software_of(outline); own != nullptr) {
    set_latency(system, own->latency_us);
    software = own;
  }
  if (cluster.topology.server(server).grouped_nics) {
    NicGrouping(nic_groups(outline)).apply(system);
  }
  const std::vector<NodeId> in_use = kinds.gpus_of(server);
  std::vector<bool> used;
  for (const NodeId node : kinds.nodes_of(server)) {
    if (cluster.topology.node(node).kind == NodeKind::Gpu) {
      used.push_back(std::find(in_use.begin(), in_use.end(), node) != in_use.end());
    }
  }
  visit_devices(system, [&used](NcclPci& device) {
    std::erase_if(device.gpus, [&](const NcclGpu& gpu) {
      return !used[static_cast<std::size_t>(gpu.rank.value_or(0))];
    });
  });
  return system;
}

}  // namespace

std::optional<std::string_view> library_of(const GpuModel& gpu) {
  if (gpu.compute_capability) {
    return "nccl";
  }
  const std::optional<std::string> gcn = gcn_of(gpu.architecture);
  return gcn && amd_generation(*gcn) != nullptr ? std::optional<std::string_view>("rccl")
                                                : std::nullopt;
}

JobNodes job_nodes(const Cluster& cluster, Domains domains) {
  const SwitchGraph graph(cluster.topology);
  const ServerKinds kinds(cluster, graph);
  JobNodes nodes{.first_rank = {0}, .unplugged = !has_network(cluster.topology)};
  std::map<std::size_t, NcclSystem> file_of_kind;  // Files by kind of server.
  // First kind of nodes for each row of kinds of servers.
  std::map<std::vector<std::size_t>, std::size_t> known;
  for (const std::vector<ServerId>& servers : joined_servers(cluster, kinds)) {
    std::vector<std::size_t> key;
    for (const ServerId server : servers) {
      key.push_back(kinds.kind_of(server));
    }
    const auto [first, is_new] = known.try_emplace(key, nodes.kinds.size());
    for (std::size_t host = 0; host < key.size() && is_new; ++host) {
      auto file = file_of_kind.find(key[host]);
      if (file == file_of_kind.end()) {
        const ServerId one = kinds.kinds()[key[host]].first;
        file =
            file_of_kind.emplace(key[host], system_of(cluster, kinds, one, nodes.software)).first;
      }
      if (host == 0 || domains == Domains::Apart) {
        nodes.kinds.emplace_back();
      }
      nodes.kinds.back().push_back(file->second);
    }
    for (std::size_t host = 0; host < (domains == Domains::Joined ? 1 : key.size()); ++host) {
      const std::size_t kind = first->second + host;
      nodes.kind.push_back(static_cast<int>(kind));
      const std::vector<NcclSystem>& own = nodes.kinds[kind];
      nodes.first_rank.push_back(std::transform_reduce(
          own.begin(), own.end(), nodes.first_rank.back(), std::plus<>(), gpu_count));
    }
  }
  if (fabric_reduces(cluster.topology)) {
    for (std::vector<NcclSystem>& files : nodes.kinds) {
      std::for_each(files.begin(), files.end(), mark_reducing);
    }
  }
  return nodes;
}

JobNodes job_nodes(const NcclSystem& server, const ServerJob& job) {
  const int has = gpu_count(server);
  const int used = job.gpus_per_node.value_or(has);
  if (used > has) {
    throw ConfigError(
        fmt::format("--gpus-per-node: expected at most {}, the GPUs of the topology file, found {}",
                    has, used));
  }
  const int all = job.nodes * used;
  const int ranks = job.ranks.value_or(all);
  if (ranks > all) {
    throw ConfigError(fmt::format(
        "--ranks: expected at most {} ({} nodes of {} GPUs; --nodes gives more), found {}", all,
        job.nodes, used, ranks));
  }
  JobNodes nodes;
  const auto add_node = [&](int first, int gpus) {
    nodes.kind.push_back(static_cast<int>(nodes.kinds.size()) - 1);
    nodes.first_rank.push_back(first);
    return first + gpus;
  };
  int next = 0;
  if (ranks >= used) {
    nodes.kinds.push_back({first_gpus(server, used)});
    while (next + used <= ranks) {
      next = add_node(next, used);
    }
  }
  if (next < ranks) {
    nodes.kinds.push_back({first_gpus(server, ranks - next)});
    next = add_node(next, ranks - next);
  }
  nodes.first_rank.push_back(next);
  return nodes;
}

}  // namespace trainyard::nccl
