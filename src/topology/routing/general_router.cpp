// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/general_router.h"

#include "topology/graph/dependency_graph.h"

namespace trainyard {
namespace {

std::uint32_t network_cost(LinkKind kind) {
  return kind == LinkKind::Network ? 1 : 0;
}

}  // namespace

GeneralRouter::GeneralRouter(const Topology& topology)
    : topology_(topology),
      layer_(
          topology, [](NodeKind kind) { return kind == NodeKind::Switch; }, network_cost) {}

void GeneralRouter::mark_used(std::vector<bool>& used) {
  layer_.visit_turns(used, [](std::span<const LinkId>, std::span<const LinkId>) {});
}

void GeneralRouter::add_dependencies(DependencyGraph& graph) {
  std::vector<bool> used(topology_.link_count(), false);
  layer_.visit_turns(used, [&](std::span<const LinkId> in, std::span<const LinkId> out) {
    for (const LinkId held : in) {
      for (const LinkId awaited : out) {
        graph.add(graph.buffer(held, 0), graph.buffer(awaited, 0));
      }
    }
  });
}

}  // namespace trainyard
