// SPDX-License-Identifier: Apache-2.0
// How soon news of one device can be at any other where every device may pass them on.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"
#include "topology/graph/topology.h"

namespace trainyard {

enum class Heading : std::uint8_t { FromHub, ToHub };

// Returns for each node the least sum of latencies, in the sense of path_latency(), from the hub to
// it or from it to the hub, over all ways through the graph; a GPU that passes something on adds
// nothing. No chain of messages is shorter, whatever routes they take. SimTime::max(): no way.
[[nodiscard]] std::vector<SimTime> relayed_latencies(const Topology& topology, NodeId hub,
                                                     Heading heading);

}  // namespace trainyard
