// SPDX-License-Identifier: Apache-2.0
// The part of routing that crosses the fabric: from endpoint to endpoint (NICs, and GPUs with links
// of their own into the fabric) through switches. A template of the table in
// topology/fabric/fabric.cpp names the router of its shape; GeneralRouter serves any graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topology/graph/topology.h"
#include "topology/routing/routing.h"

namespace trainyard {

class Chooser;
class DependencyGraph;

class FabricRouter {
 public:
  FabricRouter(const FabricRouter&) = delete;
  FabricRouter& operator=(const FabricRouter&) = delete;
  virtual ~FabricRouter() = default;

  // All endpoints, leaf by leaf. Their number in this list is what static routing spreads by.
  [[nodiscard]] virtual const std::vector<NodeId>& endpoints() const = 0;
  // Appends the links of a path; false, and nothing appended, if there is none. Switches may be
  // ends too.
  [[nodiscard]] virtual bool append_route(NodeId source, NodeId target, const Chooser& chooser,
                                          std::vector<LinkId>& path) = 0;
  // The virtual channel of each link of a path that append_route gave: all 0 unless the router uses
  // several.
  virtual void virtual_channels(std::span<const LinkId> path,
                                std::vector<std::uint8_t>& channels) const;
  // The most links of a path between two switches with endpoints, if the router knows it without
  // looking at all pairs.
  [[nodiscard]] virtual std::optional<int> diameter() const { return std::nullopt; }
  // Whether add_dependencies and mark_used look at all pairs of switches, as a router does that
  // knows no structure. It also finds a path wherever there is one.
  [[nodiscard]] virtual bool looks_at_all_pairs() const { return false; }
  // Whether path numbers tell all equally good paths apart, so that spraying uses each of them.
  [[nodiscard]] virtual bool numbers_paths() const { return true; }
  // Whether adaptive routing weighs paths of several lengths: it then does so once for a
  // connection.
  [[nodiscard]] virtual bool weighs_lengths() const { return false; }
  // Marks, by link, those that some route between endpoints may take.
  virtual void mark_used(std::vector<bool>& used) = 0;
  // Which buffer may wait for which (topology/graph/dependency_graph.h).
  virtual void add_dependencies(DependencyGraph& graph) = 0;

 protected:
  FabricRouter() = default;
};

// Makes a router; FabricShape::router points to it. `topology` must outlive the router.
template <typename Router>
[[nodiscard]] std::unique_ptr<FabricRouter> make_router(const Topology& topology,
                                                        const RoutingOptions& options) {
  return std::make_unique<Router>(topology, options);
}

// The router of the shape of the fabric.
[[nodiscard]] std::unique_ptr<FabricRouter> make_fabric_router(const Topology& topology,
                                                               const RoutingOptions& options);

}  // namespace trainyard
