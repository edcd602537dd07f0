// SPDX-License-Identifier: Apache-2.0
// Clusters of chance: servers of any GPU, tree and number of NICs below any fabric of tiers, and
// shipped clusters of other sizes. Each is one that a file of a user could describe.
#pragma once

#include <string>

#include "sim/random.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct DrawnMachine {
  std::string what;  // The text of the file, or the name of the shipped cluster with its size.
  Cluster cluster;
};

// At most 32 GPUs. Draws again where the file is refused.
[[nodiscard]] DrawnMachine draw_machine(RandomStream& random);

// The same machine with all rates multiplied, or all latencies divided, by 2.
[[nodiscard]] Cluster with_twice_the_bandwidth(const Cluster& cluster);
[[nodiscard]] Cluster with_half_the_latency(const Cluster& cluster);

}  // namespace trainyard
