// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/general_router.h"

#include "topology/graph/dependency_graph.h"

namespace trainyard {
namespace {

std::uint32_t network_cost(LinkKind kind) {
  return kind == LinkKind::Network ? 1 : 0;
}

}  // namespace

GeneralRouter::GeneralRouter(const Topology& topology, const RoutingOptions& options)
    : topology_(topology),
      channels_(options.fabric.virtual_channels),
      layer_(
          topology, [](NodeKind kind) { return kind == NodeKind::Switch; }, network_cost) {}

void GeneralRouter::virtual_channels(std::span<const LinkId> path,
                                     std::vector<std::uint8_t>& channels) const {
  channels.assign(path.size(), 0);
  std::uint32_t left = 0;
  for (std::size_t hop = path.size(); hop-- > 0;) {
    const Link& link = topology_.link(path[hop]);
    if (topology_.node(link.source).kind == NodeKind::Switch &&
        topology_.node(link.target).kind == NodeKind::Switch) {
      channels[hop] = static_cast<std::uint8_t>(channel(left++));
    }
  }
}

void GeneralRouter::mark_used(std::vector<bool>& used) {
  layer_.visit_turns(used, [](std::span<const LinkId>, std::span<const LinkId>, std::uint32_t) {});
}

void GeneralRouter::add_dependencies(DependencyGraph& graph) {
  std::vector<bool> used(topology_.link_count(), false);
  layer_.visit_turns(
      used, [&](std::span<const LinkId> in, std::span<const LinkId> out, std::uint32_t distance) {
        for (const LinkId held : in) {
          for (const LinkId awaited : out) {  // None at the target, where the distance is zero.
            graph.add(graph.buffer(held, channel(distance)),
                      graph.buffer(awaited, channel(distance - 1)));
          }
        }
      });
}

}  // namespace trainyard
