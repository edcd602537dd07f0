// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/job_nodes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "nccl/machine/gpu_ranks.h"
#include "nccl/machine/machine_import.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

template <typename Devices, typename Visit>
void visit_devices(Devices& devices, const Visit& visit) {
  for (auto& device : devices) {
    visit(device);
    visit_devices(device.pcis, visit);
  }
}

int gpu_count(const NcclSystem& system) {
  std::size_t count = 0;
  for (const NcclCpu& cpu : system.cpus) {
    visit_devices(cpu.pcis, [&count](const NcclPci& device) { count += device.gpus.size(); });
  }
  return static_cast<int>(count);
}

// The GPUs of the first ranks.
NcclSystem first_gpus(const NcclSystem& system, int count) {
  std::vector<NcclSystem> servers{system};
  const std::map<const NcclGpu*, int> ranks = number_gpus(servers);
  std::vector<bool> kept;  // In the order of the file.
  for (const NcclCpu& cpu : servers.front().cpus) {
    visit_devices(cpu.pcis, [&](const NcclPci& device) {
      for (const NcclGpu& gpu : device.gpus) {
        kept.push_back(ranks.at(&gpu) < count);
      }
    });
  }
  std::size_t position = 0;
  for (NcclCpu& cpu : servers.front().cpus) {
    visit_devices(cpu.pcis, [&](NcclPci& device) {
      std::erase_if(device.gpus, [&](const NcclGpu&) { return !kept[position++]; });
    });
  }
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
  for (NcclCpu& cpu : system.cpus) {
    visit_devices(cpu.pcis, [](NcclPci& device) {
      for (NcclNic& nic : device.nics) {
        for (NcclNet& net : nic.nets) {
          net.coll = 1;
        }
      }
    });
  }
}

}  // namespace

JobNodes job_nodes(const Cluster& cluster, const Catalogue& catalogue, Domains domains) {
  const ClusterSystems systems = import_systems(cluster, catalogue);
  JobNodes nodes;
  int ranks = 0;
  // First kind of `systems` for each host, where hosts stand apart.
  std::vector<std::size_t> first_kind;
  for (const std::vector<NcclSystem>& files : systems.kinds) {
    first_kind.push_back(nodes.kinds.size());
    if (domains == Domains::Joined) {
      nodes.kinds.push_back(files);
      continue;
    }
    for (const NcclSystem& file : files) {
      nodes.kinds.push_back({file});
    }
  }
  for (const ClusterNode& node : systems.nodes) {
    const std::size_t hosts = domains == Domains::Joined ? 1 : node.servers.size();
    for (std::size_t host = 0; host < hosts; ++host) {
      const std::size_t kind = first_kind[node.kind] + host;
      nodes.kind.push_back(static_cast<int>(kind));
      nodes.first_rank.push_back(ranks);
      ranks += domains == Domains::Joined ? node.ranks : gpu_count(nodes.kinds[kind].front());
    }
  }
  nodes.first_rank.push_back(ranks);
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
