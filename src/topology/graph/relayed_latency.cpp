// SPDX-License-Identifier: Apache-2.0
// Dijkstra's algorithm. Ways to the hub are those from it in the graph with its links turned round.
#include "topology/graph/relayed_latency.h"

#include <functional>
#include <queue>
#include <utility>

namespace trainyard {

std::vector<SimTime> relayed_latencies(const Topology& topology, NodeId hub, Heading heading) {
  const bool turned = heading == Heading::ToHub;
  const auto begin_of = [&](const Link& link) { return turned ? link.target : link.source; };
  const auto end_of = [&](const Link& link) { return turned ? link.source : link.target; };
  std::vector<std::pair<std::uint32_t, LinkId>> entries;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    entries.emplace_back(begin_of(topology.link(LinkId(index))).value(), LinkId(index));
  }
  const Lists<LinkId> links(topology.node_count(), entries);
  std::vector<SimTime> latencies(topology.node_count(), SimTime::max());
  using Entry = std::pair<SimTime, std::uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  latencies[hub.value()] = SimTime();
  open.emplace(SimTime(), hub.value());
  while (!open.empty()) {
    const auto [latency, node] = open.top();
    open.pop();
    if (latency > latencies[node]) {
      continue;
    }
    for (const LinkId id : links.of(node)) {
      const Link& link = topology.link(id);
      // A message that ends in a GPU is not charged for it, and ends there when it is passed on.
      const Node& entered = topology.node(link.target);
      const SimTime reached = latency + link.spec.latency +
                              (entered.kind == NodeKind::Gpu ? SimTime() : entered.latency);
      SimTime& known = latencies[end_of(link).value()];
      if (reached < known) {
        known = reached;
        open.emplace(reached, end_of(link).value());
      }
    }
  }
  return latencies;
}

}  // namespace trainyard
