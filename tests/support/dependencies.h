// SPDX-License-Identifier: Apache-2.0
// Cycles of buffer dependencies: as a router states them, and from routes one by one.
#pragma once

#include <cstdint>
#include <vector>

#include "support/clusters.h"
#include "topology/graph/dependency_graph.h"

namespace trainyard {

// As add_dependencies says.
inline std::vector<LinkId> stated_cycle(const Topology& topology, FabricRouter& router,
                                        const RoutingOptions& options) {
  DependencyGraph graph(topology.link_count(), options.fabric.virtual_channels);
  router.add_dependencies(graph);
  return graph.find_cycle();
}

// From the routes of `labels` flows for each pair of endpoints.
inline std::vector<LinkId> routed_cycle(const Topology& topology, FabricRouter& router,
                                        const RoutingOptions& options, std::uint32_t labels) {
  DependencyGraph graph(topology.link_count(), options.fabric.virtual_channels);
  std::vector<std::uint8_t> channels;
  for (const NodeId source : router.endpoints()) {
    for (const NodeId target : router.endpoints()) {
      for (std::uint32_t label = 0; label < labels && source != target; ++label) {
        const std::vector<LinkId> path = fabric_route(router, options, source, target, label);
        router.virtual_channels(path, channels);
        for (std::size_t hop = 0; hop + 1 < path.size(); ++hop) {
          graph.add(graph.buffer(path[hop], channels[hop]),
                    graph.buffer(path[hop + 1], channels[hop + 1]));
        }
      }
    }
  }
  return graph.find_cycle();
}

}  // namespace trainyard
