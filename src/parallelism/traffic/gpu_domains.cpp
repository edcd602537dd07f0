// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/gpu_domains.h"

#include <cstddef>

#include "parallelism/traffic/cluster_times.h"

namespace trainyard {

// Servers have numbers from zero on; a joining switch stands behind them by its own.
std::vector<int> domains_of_gpus(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  std::vector<int> domains = servers_of_gpus(cluster);
  for (std::size_t rank = 0; rank < domains.size(); ++rank) {
    for (const LinkId link : topology.links_from(cluster.gpus[rank])) {
      const NodeId peer = topology.link(link).target;
      if (topology.node(peer).kind == NodeKind::NvSwitch && !topology.node(peer).server) {
        domains[rank] = static_cast<int>(topology.server_count() + peer.value());
      }
    }
  }
  return domains;
}

}  // namespace trainyard
