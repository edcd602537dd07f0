// SPDX-License-Identifier: Apache-2.0
// Says where the servers of a cluster copy data through host memory instead of from device to
// device (routing.h, Staging), for the notes of whatever is timed on it.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster/cluster.h"

namespace trainyard {

// One note for each kind of server that stages, told apart by the GPUs and the traits of servers:
// how many pairs of its GPUs do, and how many of its GPUs on their way to a NIC. The latter counts
// where there are several servers.
[[nodiscard]] std::vector<std::string> staging_notes(const Cluster& cluster);

}  // namespace trainyard
