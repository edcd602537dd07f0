// SPDX-License-Identifier: Apache-2.0
// Deadlock: links that are stopped, by PFC or for lack of credits, because of each other.
#include <algorithm>

#include "network/packet/packet_engine.h"

namespace trainyard {

// An edge leads from a stopped port to each stopped port in whose queue packets wait that came by
// the first: they fill the buffer for which the first was stopped. A walk from every port in turn,
// along the first edge that is not explored yet, either ends or meets itself.
// Lanes are stopped one by one, so each lane of a port is such a port.
std::vector<LinkId> PacketEngine::deadlock() const {
  const std::vector<Port>& ports = fabric_.ports();
  constexpr std::uint32_t kLanes = LaneOptions::kLanes;
  const auto is_stopped = [&](std::uint32_t index, std::uint32_t lane) {
    const Port& port = ports[index];
    return port.lanes == kNoIndex ? port.is_stopped() : fabric_.lanes()[port.lanes].is_paused(lane);
  };
  const auto vertex = [&](std::uint32_t index, std::uint32_t lane) {
    return index * kLanes + (ports[index].lanes == kNoIndex ? 0 : lane);
  };
  std::vector<std::vector<std::uint32_t>> waits_for(ports.size() * kLanes);
  const auto add_edges = [&](std::uint32_t index, const Ring<Packet>& queue) {
    for (std::uint32_t i = 0; i < queue.size(); ++i) {
      const std::uint32_t lane = fabric_.lane_of(queue.at(i).connection);
      const std::uint32_t before = fabric_.positions()[queue.at(i).position - 1];
      std::vector<std::uint32_t>& edges = waits_for[vertex(before, lane)];
      const std::uint32_t edge = vertex(index, lane);
      const bool is_new = std::find(edges.begin(), edges.end(), edge) == edges.end();
      if (is_stopped(index, lane) && is_stopped(before, lane) && is_new) {
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
  enum class State : std::uint8_t { Unknown, OnTheWay, Done };
  std::vector<State> states(waits_for.size(), State::Unknown);
  std::vector<std::uint32_t> way;
  for (std::uint32_t first = 0; first < states.size(); ++first) {
    if (states[first] == State::Unknown) {
      way.push_back(first);
      states[first] = State::OnTheWay;
    }
    while (!way.empty()) {
      std::vector<std::uint32_t>& edges = waits_for[way.back()];
      if (edges.empty()) {
        states[way.back()] = State::Done;
        way.pop_back();
        continue;
      }
      const std::uint32_t next = edges.back();
      edges.pop_back();
      if (states[next] == State::OnTheWay) {
        std::vector<LinkId> cycle;
        for (auto port = std::find(way.begin(), way.end(), next); port != way.end(); ++port) {
          cycle.emplace_back(ports[*port / kLanes].link);
        }
        return cycle;
      }
      if (states[next] == State::Unknown) {
        states[next] = State::OnTheWay;
        way.push_back(next);
      }
    }
  }
  return {};
}

}  // namespace trainyard
