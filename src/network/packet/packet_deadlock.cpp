// SPDX-License-Identifier: Apache-2.0
// Deadlock: links that are stopped, by PFC or for lack of credits, because of each other.
#include <set>
#include <utility>

#include "network/packet/packet_engine.h"
#include "topology/graph/dependency_graph.h"

namespace trainyard {

// An edge leads from a stopped port to each stopped port in whose queue packets wait that came by
// the first: they fill the buffer for which the first was stopped. Lanes are stopped one by one, so
// each lane of a port is such a port.
std::vector<LinkId> PacketEngine::deadlock() const {
  const std::vector<Port>& ports = fabric_.ports();
  DependencyGraph graph(static_cast<std::uint32_t>(ports.size()), LaneOptions::kLanes);
  const auto is_stopped = [&](std::uint32_t index, std::uint32_t lane) {
    const Port& port = ports[index];
    return port.lanes == kNoIndex ? port.is_stopped() : fabric_.lanes()[port.lanes].is_paused(lane);
  };
  const auto vertex = [&](std::uint32_t index, std::uint32_t lane) {
    return graph.buffer(LinkId(index), ports[index].lanes == kNoIndex ? 0 : static_cast<int>(lane));
  };
  std::set<std::pair<std::uint32_t, std::uint32_t>> known;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  const auto add_edges = [&](std::uint32_t index, const Ring<Packet>& queue) {
    for (std::uint32_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t lane = fabric_.lane_of(queue.at(i).connection);
      const std::uint32_t before = fabric_.positions()[queue.at(i).position - 1];
      const std::pair edge(vertex(before, lane), vertex(index, lane));
      if (is_stopped(index, lane) && is_stopped(before, lane) && known.insert(edge).second) {
        edges.push_back(edge);
      }
    }
  };
  for (std::uint32_t index = 0; index < ports.size(); ++index) {
    const Port& port = ports[index];
    add_edges(index, port.queue);
    if (port.lanes != kNoIndex) {
      for (const LaneQueues::Lane& lane : fabric_.lanes()[port.lanes].lanes) {
        add_edges(index, lane.queue);
      }
    }
  }
  // Walks take the edge first that was found last.
  for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
    graph.add(edge->first, edge->second);
  }
  std::vector<LinkId> cycle = graph.find_cycle();  // Numbers of ports.
  for (LinkId& link : cycle) {
    link = LinkId(ports[link.value()].link);
  }
  return cycle;
}

}  // namespace trainyard
