// SPDX-License-Identifier: Apache-2.0
// Finds the routes that are left once cables of the fabric have failed in the middle of a run.
//
// The way through the fabric is chosen anew between the same two endpoints, which a connection has
// opened and cannot leave: NICs, or GPUs with links of their own. It is what the policy chooses
// among the equally good links that are left, as in a fabric that was built without the others.
// What is inside servers stays as it was. A path that no failed link is on stays as well, as
// switches with resilient hashing leave flows alone that need not move.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "topology/graph/topology.h"
#include "topology/routing/chooser.h"
#include "topology/routing/fabric_router.h"
#include "topology/routing/routing.h"

namespace trainyard {

// The link back: of several between two nodes the first belongs to the first, and so on.
[[nodiscard]] std::optional<LinkId> opposite_link(const Topology& topology, LinkId link);

class SurvivingRoutes {
 public:
  // A connection, as Routing::route() was asked for its path.
  struct Flow {
    NodeId source;
    NodeId target;
    std::uint32_t flow_label = 0;
    std::uint32_t number = 0;  // Number of the path, for RoutingPolicy::Spray.
  };
  enum class Outcome : std::uint8_t {
    Whole,   // Nothing of the path has failed.
    Moved,   // It has been replaced.
    CutOff,  // No way is left through the fabric; the path is as it was.
  };

  // A cable fails in both directions, whichever of its links is named. `topology` must outlive the
  // object.
  SurvivingRoutes(const Topology& topology, RoutingOptions options, std::span<const LinkId> failed);
  SurvivingRoutes(const SurvivingRoutes&) = delete;
  SurvivingRoutes& operator=(const SurvivingRoutes&) = delete;

  [[nodiscard]] bool has_failed(LinkId link) const { return has_failed_[link.value()]; }
  [[nodiscard]] Outcome reroute(const Flow& flow, std::vector<LinkId>& path);

 private:
  const Topology& whole_;
  RoutingOptions options_;
  std::vector<bool> has_failed_;   // One per link.
  std::vector<LinkId> whole_ids_;  // One per link of `left_`, which are numbered anew.
  Topology left_;
  std::unique_ptr<FabricRouter> router_;
  std::vector<std::uint32_t> index_;  // Number of each node among the endpoints.
  LinkLoads loads_;
};

}  // namespace trainyard
