// SPDX-License-Identifier: Apache-2.0
// A topology as text for other programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "topology/graph/topology.h"

namespace trainyard {

// Graphviz. Servers are boxes; both directions of a link are one line, parallel links too.
[[nodiscard]] std::string to_dot(const Topology& topology);

// {"nodes": [...], "links": [...]}: every node, every directed link, in order of id.
[[nodiscard]] nlohmann::ordered_json graph_json(const Topology& topology);

}  // namespace trainyard
