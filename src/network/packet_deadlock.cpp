// SPDX-License-Identifier: Apache-2.0
// Deadlock: links that are stopped, by PFC or for lack of credits, because of each other.
#include <algorithm>

#include "network/packet_engine.h"

namespace trainyard {

// An edge leads from a stopped port to each stopped port in whose queue packets wait that came by
// the first: they fill the buffer for which the first was stopped. A walk from every port in turn,
// along the first edge that is not explored yet, either ends or meets itself.
std::vector<LinkId> PacketEngine::deadlock() const {
  const std::vector<Port>& ports = fabric_.ports();
  std::vector<std::vector<std::uint32_t>> waits_for(ports.size());
  for (std::uint32_t index = 0; index < ports.size(); ++index) {
    const Port& port = ports[index];
    if (port.stops == 0) {
      continue;
    }
    for (std::uint32_t i = 0; i < port.queue.size(); ++i) {
      const Packet& packet = port.queue.at(i);
      const std::uint32_t before = fabric_.positions()[packet.position - 1];
      std::vector<std::uint32_t>& edges = waits_for[before];
      const bool is_new = std::find(edges.begin(), edges.end(), index) == edges.end();
      if (ports[before].stops != 0 && is_new) {
        edges.push_back(index);
      }
    }
  }
  enum class State : std::uint8_t { Unknown, OnTheWay, Done };
  std::vector<State> states(ports.size(), State::Unknown);
  std::vector<std::uint32_t> way;
  for (std::uint32_t first = 0; first < ports.size(); ++first) {
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
          cycle.emplace_back(ports[*port].link);
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
