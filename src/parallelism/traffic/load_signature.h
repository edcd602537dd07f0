// SPDX-License-Identifier: Apache-2.0
// Tells apart traffic of the same shape at several places of a cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "network/sharing/load_sharing.h"
#include "topology/graph/topology.h"

namespace trainyard {

// Appends how long each of the connections that were added last is, and what each load puts on
// links of servers. Links between switches, on which hashes put what they like, say nothing but
// rates.
void append_signature(const Topology& topology, const std::vector<Load>& loads,
                      ConnectionLoads& connections, std::vector<std::int64_t>& key);
// The least rate of a load that has its links alone, in bits a second.
[[nodiscard]] std::int64_t min_rate(const Topology& topology, const Load& load);

}  // namespace trainyard
