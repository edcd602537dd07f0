// SPDX-License-Identifier: Apache-2.0
// Switches that some of the edges between them join.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "topology/graph/switch_graph.h"

namespace trainyard {

// Returns for each of `switches` switches the first of those that it is joined with by the edges
// for which `joins` holds, whatever their direction.
[[nodiscard]] std::vector<std::uint32_t> switch_regions(
    std::uint32_t switches, std::span<const SwitchEdge> edges,
    const std::function<bool(const SwitchEdge&)>& joins);

}  // namespace trainyard
