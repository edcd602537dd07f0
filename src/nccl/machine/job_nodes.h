// SPDX-License-Identifier: Apache-2.0
// The nodes of a job and what NCCL finds on them: the topology files of their hosts.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "nccl/machine/network_software.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

// The library that runs collectives on a GPU, "nccl" or "rccl"; nothing where it is not modelled.
[[nodiscard]] std::optional<std::string_view> library_of(const GpuModel& gpu);

struct JobNodes {
  // The topology files of the hosts of one node: several where an NVLink domain joins them.
  std::vector<std::vector<NcclSystem>> kinds = {};
  std::vector<int> kind = {};        // Indexed by node.
  std::vector<int> first_rank = {};  // Indexed by node, with the number of ranks at the end.
  // True where no NIC has a cable: GPUs of one server then have no way to each other over NICs.
  bool unplugged = false;
  const NetworkSoftware* software = nullptr;  // The NICs' own; null if it has no rules.
};

enum class Domains { Joined, Apart };  // Whether hosts of one NVLink domain are one node.

// Returns the nodes of the GPUs of a cluster that ranks use: a server, or all servers of an NVLink
// domain, of which NCCL makes one node unless NICs divide it (make_machines). Files have all NICs,
// but only the GPUs that ranks use. Throws ConfigError for servers that NCCL's file cannot
// describe.
[[nodiscard]] JobNodes job_nodes(const Cluster& cluster, Domains domains);

// `nodes` servers of one file and the GPUs of the first ranks of each; of the last node perhaps
// fewer.
struct ServerJob {
  int nodes = 1;
  std::optional<int> gpus_per_node = {};  // All if absent.
  std::optional<int> ranks = {};          // All if absent.
};
// Throws ConfigError "OPTION: expected ..., found ..." where there are not as many.
[[nodiscard]] JobNodes job_nodes(const NcclSystem& server, const ServerJob& job);

}  // namespace trainyard::nccl
