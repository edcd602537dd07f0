// SPDX-License-Identifier: Apache-2.0
// The topology files that NCCL would find on the servers of a cluster.
#pragma once

#include <cstddef>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/ids.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

// The part of one server, or of all servers of one NVLink domain, that ranks use: NCCL makes one
// node of it, unless NICs divide it (make_machines).
struct ClusterNode {
  std::vector<ServerId> servers;
  std::size_t kind = 0;  // Index into ClusterSystems::kinds.
  int first_rank = 0;
  int ranks = 0;
};

struct ClusterSystems {
  std::vector<ClusterNode> nodes;              // In the order of their ranks.
  std::vector<std::vector<NcclSystem>> kinds;  // A file for each server of such a node.
};

// GPUs that no rank uses are left out of the files, NICs are not. Throws ConfigError for servers
// that to_nccl_xml cannot write.
[[nodiscard]] ClusterSystems import_systems(const Cluster& cluster, const Catalogue& catalogue);

}  // namespace trainyard::nccl
