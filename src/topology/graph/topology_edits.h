// SPDX-License-Identifier: Apache-2.0
// The same topology with other links: rates and latencies change, nodes, links and their numbers
// stay, so that what was placed on the one is placed on the other.
#pragma once

#include <functional>

#include "topology/graph/topology.h"

namespace trainyard {

// Either may be empty. Ends and numbers cannot change.
struct TopologyEdits {
  std::function<void(LinkId, LinkSpec&)> link = {};
  std::function<void(NodeId, Node&)> node = {};
};

[[nodiscard]] Topology edited(const Topology& topology, const TopologyEdits& edits);

}  // namespace trainyard
