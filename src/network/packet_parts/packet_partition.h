// SPDX-License-Identifier: Apache-2.0
// Cutting a fabric into parts that are worked through side by side. All ports that send from a node
// are in one part; links that lead into another one are what parts have to tell each other.
//
// Servers stay whole, and with the switch that they are linked to first. These groups are cut into
// runs of about equal numbers of links, in order of the switches. Further up a switch goes where
// most of its neighbours below are; where several parts have equally many, as for a spine, to the
// one with the fewest links so far. Results do not depend on the cut, only times do.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/graph/topology.h"

namespace trainyard {

// The part of each node, from 0 to less than `parts`.
[[nodiscard]] std::vector<std::uint32_t> cut_into_parts(const Topology& topology,
                                                        std::uint32_t parts);

}  // namespace trainyard
