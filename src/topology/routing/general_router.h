// SPDX-License-Identifier: Apache-2.0
// Routes any fabric by fewest hops, with the fields of topology/routing/layer.h. Takes memory for
// every pair of switches that is used: for graphs without a structure, or with a broken one.
//
// Virtual channels count from the end of a path: its last link between switches has the last
// channel, the one before that the channel below, and all that lie farther back share channel 0. So
// links wait only for links of higher channels wherever a path has as many channels as links, which
// rules out a deadlock (the hop classes of Gopal, Prevention of store-and-forward deadlock in
// computer networks, 1985, in reverse).
#pragma once

#include <algorithm>
#include <cstdint>

#include "topology/routing/fabric_router.h"
#include "topology/routing/layer.h"

namespace trainyard {

class GeneralRouter final : public FabricRouter {
 public:
  explicit GeneralRouter(const Topology& topology, const RoutingOptions& options = {});

  [[nodiscard]] const std::vector<NodeId>& endpoints() const override { return layer_.endpoints(); }
  [[nodiscard]] bool append_route(NodeId source, NodeId target, const Chooser& chooser,
                                  std::vector<LinkId>& path) override {
    return layer_.append_route(source, target, chooser, path);
  }
  void virtual_channels(std::span<const LinkId> path,
                        std::vector<std::uint8_t>& channels) const override;
  [[nodiscard]] bool looks_at_all_pairs() const override { return true; }
  void mark_used(std::vector<bool>& used) override;
  void add_dependencies(DependencyGraph& graph) override;

 private:
  // Returns the channel of a link between switches that `left` such links follow.
  [[nodiscard]] int channel(std::uint32_t left) const {
    const auto last = static_cast<std::uint32_t>(channels_ - 1);
    return static_cast<int>(last - std::min(left, last));
  }

  const Topology& topology_;
  int channels_;
  Layer layer_;
};

}  // namespace trainyard
