// SPDX-License-Identifier: Apache-2.0
// The collectives that a set of measurements has, by the rules of Open MPI on a cluster.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/hosts/host_set.h"
#include "collectives/mpi/mpi_call.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

class HostCollectives {
 public:
  // Ranks through shared memory are on the first server of `cluster`, those over TCP on one server
  // each. Rows of more ranks than the host has cores are left out. `cluster` and `rules` must
  // outlive it. Throws ConfigError for a row that has no schedule, or more ranks than GPUs or
  // servers.
  HostCollectives(const HostSet& set, const Cluster& cluster, const MpiRules& rules);

  // How long a collective of the set takes with these costs, by its number in HostSet::rows.
  [[nodiscard]] SimTime time(std::size_t row, const MpiProfile& profile) const;

 private:
  struct Call {
    MpiCall call = {};
    std::string algorithm = {};  // Empty: the row is no collective that is timed.
    std::vector<NodeId> nodes = {};
  };
  const Cluster& cluster_;
  const MpiRules& rules_;
  std::vector<Call> calls_;  // Indexed by row.
};

}  // namespace trainyard
