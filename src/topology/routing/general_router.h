// SPDX-License-Identifier: Apache-2.0
// Routes any fabric by fewest hops, with the fields of topology/routing/layer.h. Takes memory for
// every pair of switches that is used: for graphs without a structure, or with a broken one.
#pragma once

#include "topology/routing/fabric_router.h"
#include "topology/routing/layer.h"

namespace trainyard {

class GeneralRouter final : public FabricRouter {
 public:
  explicit GeneralRouter(const Topology& topology);

  [[nodiscard]] const std::vector<NodeId>& endpoints() const override { return layer_.endpoints(); }
  [[nodiscard]] bool append_route(NodeId source, NodeId target, const Chooser& chooser,
                                  std::vector<LinkId>& path) override {
    return layer_.append_route(source, target, chooser, path);
  }
  [[nodiscard]] bool looks_at_all_pairs() const override { return true; }
  void mark_used(std::vector<bool>& used) override;
  void add_dependencies(DependencyGraph& graph) override;

 private:
  const Topology& topology_;
  Layer layer_;
};

}  // namespace trainyard
