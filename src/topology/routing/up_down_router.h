// SPDX-License-Identifier: Apache-2.0
// Routes through fabrics in tiers: up towards the roots, then down, never up again.
//
// Such a route exists between all leaves of a whole Clos network, is a shortest one there, and
// cannot deadlock: a link up is only waited for by links up, a link down leads to links down only
// (Schroeder et al., Autonet: a high-speed, self-configuring local area network using
// point-to-point links, 1991, routes any graph in this way). After faults the router finds a way up
// and down if there is one, among these a shortest, and takes no other: what would be a valley
// counts as cut off.
//
// Which links are equally good follows from topology/routing/up_down_reach.h: at most one test for
// each link of a switch, none where all links up lead to the same leaves. The order of links and
// the digits of static routing are those of topology/routing/layer.h, so where all shortest paths
// go up and down both routers give the same one.
#pragma once

#include "topology/routing/fabric_router.h"
#include "topology/routing/up_down_reach.h"

namespace trainyard {

class UpDownRouter final : public FabricRouter {
 public:
  explicit UpDownRouter(const Topology& topology, const RoutingOptions& /*options*/ = {});

  [[nodiscard]] const std::vector<NodeId>& endpoints() const override { return endpoints_; }
  [[nodiscard]] bool append_route(NodeId source, NodeId target, const Chooser& chooser,
                                  std::vector<LinkId>& path) override;
  [[nodiscard]] std::optional<int> diameter() const override;
  void mark_used(std::vector<bool>& used) override;
  // Says nothing of links that no route takes. What some route to one target takes may be said to
  // wait for what some route to another takes, where both go up or turn at one switch.
  void add_dependencies(DependencyGraph& graph) override;

 private:
  // A switch that an endpoint hangs off, or a switch itself, without a link.
  struct Access {
    std::uint32_t index;
    std::optional<LinkId> link;
  };
  // Targets, as intervals of leaves, that pass a switch on a way that goes up this often more.
  using Passing = std::vector<std::vector<IntervalSet>>;  // Indexed by switch and number of times.

  void find_accesses();
  void order_endpoints();
  void count_level_links();
  // Whether there is a way; then `up` and `down` are the two ends chosen.
  [[nodiscard]] bool choose_ends(NodeId source, NodeId target, const Chooser& chooser, Access& up,
                                 Access& down);
  void append_core(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                   std::vector<LinkId>& path);
  // Leaves in good_ the positions of the links to switches from which `target` is reached by going
  // up `ups` times more.
  void find_good(std::span<const UpDownReach::Hop> hops, std::uint32_t ups, std::uint32_t target);
  // One of the links at `good`, or of all.
  [[nodiscard]] const UpDownReach::Hop& choose(std::span<const UpDownReach::Hop> hops,
                                               const std::vector<std::uint32_t>* good, NodeId at,
                                               const Chooser& chooser,
                                               std::span<const LevelLinks> below);
  // The switches that endpoints have such accesses to.
  [[nodiscard]] IntervalSet leaves(const Lists<Access>& accesses) const;
  // Returns the targets that the endpoints of each source leaf send to.
  [[nodiscard]] Passing start() const;
  void mark_core(std::vector<bool>& used) const;

  const Topology& topology_;
  UpDownReach reach_;
  std::vector<NodeId> endpoints_;
  Lists<Access> ups_;    // One list per node.
  Lists<Access> downs_;  // One list per node.
  std::vector<LevelLinks> level_links_;
  // State of the route that is being made.
  std::vector<std::uint32_t> good_;
  std::vector<LinkId> good_links_;
};

}  // namespace trainyard
