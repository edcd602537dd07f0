// SPDX-License-Identifier: Apache-2.0
// Where the endpoints of a fabric of known shape hang: one switch each. The routers of such fabrics
// share it, and the part of a route outside the switches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/graph/fabric_shape.h"
#include "topology/graph/topology.h"
#include "topology/routing/chooser.h"
#include "topology/routing/fabric_router.h"

namespace trainyard {

class FabricAccess {
 public:
  // A way between a node and a switch, by its number in the fabric. A switch has one to itself,
  // without a link.
  struct Way {
    std::uint32_t at = 0;
    std::optional<LinkId> link;
  };

  // `topology` must outlive the object.
  FabricAccess(const Topology& topology, const FabricShape& shape);

  // Switch by switch, then in order of id. Those that lost a direction of their link are there.
  [[nodiscard]] const std::vector<NodeId>& endpoints() const { return endpoints_; }
  [[nodiscard]] std::optional<Way> up(NodeId source) const { return way(ups_, source); }
  [[nodiscard]] std::optional<Way> down(NodeId target) const { return way(downs_, target); }
  // Links from endpoints to a switch and from it to them.
  [[nodiscard]] std::span<const LinkId> ups_of(std::uint32_t at) const { return ups_at_.of(at); }
  [[nodiscard]] std::span<const LinkId> downs_of(std::uint32_t at) const {
    return downs_at_.of(at);
  }
  // The number of a switch; none for other nodes.
  [[nodiscard]] std::optional<std::uint32_t> number(NodeId node) const;
  [[nodiscard]] NodeId node(std::uint32_t at) const { return NodeId(first_ + at); }
  // Links from switch to switch, in order of id.
  [[nodiscard]] const std::vector<LinkId>& trunks() const { return trunks_; }

 private:
  [[nodiscard]] std::optional<Way> way(const std::vector<LinkId>& links, NodeId node) const;

  const Topology& topology_;
  std::uint32_t first_;
  std::uint32_t switches_;
  std::vector<LinkId> ups_;    // One per node; kNone where there is none.
  std::vector<LinkId> downs_;  // One per node; kNone where there is none.
  Lists<LinkId> ups_at_;
  Lists<LinkId> downs_at_;
  std::vector<LinkId> trunks_;
  std::vector<NodeId> endpoints_;
};

class AccessRouter : public FabricRouter {
 public:
  [[nodiscard]] const std::vector<NodeId>& endpoints() const final { return access_.endpoints(); }
  [[nodiscard]] bool append_route(NodeId source, NodeId target, const Chooser& chooser,
                                  std::vector<LinkId>& path) final;
  [[nodiscard]] bool numbers_paths() const final { return false; }
  // Marks all links of the fabric: every switch that may have endpoints counts as source and
  // target.
  void mark_used(std::vector<bool>& used) final;

 protected:
  // `topology` must outlive the object.
  AccessRouter(const Topology& topology, const RoutingOptions& options);
  // Appends the links between two switches; false if there is no way, whatever was appended.
  [[nodiscard]] virtual bool append_between(std::uint32_t from, std::uint32_t to,
                                            const Chooser& chooser, std::vector<LinkId>& path) = 0;

  const Topology& topology_;
  FabricAccess access_;
  int channels_;  // Virtual channels that routes may use.
};

}  // namespace trainyard
