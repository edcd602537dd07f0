// SPDX-License-Identifier: Apache-2.0
// The NVLink domains that GPUs are in.
#pragma once

#include <vector>

#include "topology/cluster/cluster.h"

namespace trainyard {

// Returns the domain of each rank's GPU: an NVSwitch that joins servers, else the server.
[[nodiscard]] std::vector<int> domains_of_gpus(const Cluster& cluster);

}  // namespace trainyard
