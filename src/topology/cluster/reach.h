// SPDX-License-Identifier: Apache-2.0
// Checks whether all GPUs of a cluster reach one another, without a look at all pairs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/cluster/cluster.h"
#include "topology/cluster/server_kinds.h"
#include "topology/graph/switch_graph.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct Unreachable {
  NodeId source;
  NodeId target;
  std::int64_t pairs = 0;  // Ordered pairs of GPUs without a route, this one among them.
  std::string why;
};

// Routes between the GPUs of one server of each kind, and of two servers of each pair of kinds,
// then between switches of the fabric. Servers with more than 128 GPUs in use, more than 16 kinds
// of server, more than 64 that are cabled to each other and more than 300 leaves are looked at in
// part: the components of the fabric,
// which the kinds tell apart, are exact for any number.
[[nodiscard]] std::optional<Unreachable> find_unreachable(const Cluster& cluster, Routing& routing,
                                                          const SwitchGraph& graph,
                                                          const ServerKinds& kinds);

// "server0/gpu3 and server1/gpu3 cannot reach each other: WHY", or nothing.
[[nodiscard]] std::optional<std::string> describe_unreachable(const Cluster& cluster);

}  // namespace trainyard
