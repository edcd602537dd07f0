// SPDX-License-Identifier: Apache-2.0
// Counts what the calls and messages of a graph of operations put on links, whatever workload it
// was made of (parallelism/traffic/call_traffic.h).
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/traffic/call_traffic.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Rank r of the graph, which passed check(), is the GPU r. `purpose` names what is of a part.
// Nothing for more than kMaxCountedRanks, and where a folded graph has calls or messages that
// represent those of ranks which are not in it. Throws ConfigError where there is no way.
[[nodiscard]] std::optional<std::vector<LinkTraffic>> graph_link_traffic(
    const Cluster& cluster, const OperationGraph& graph, const CallRuntime& runtime,
    const std::function<std::string_view(StepPart)>& purpose);

}  // namespace trainyard
