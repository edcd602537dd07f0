// SPDX-License-Identifier: Apache-2.0
// Other paths that connections take from some time on, such as those that are left once a cable has
// failed and switches know it. Packets that begin before that time, at either end, take the path
// before. They are known before they are needed, so that both ends look at the time and need not
// tell each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "network/packet_parts/packet_port.h"
#include "sim/check.h"

namespace trainyard {

// The way of a connection: positions of its first ports there and back.
struct PacketPath {
  std::uint32_t first = 0;
  std::uint32_t reverse = 0;
  std::uint8_t hops = 0;
};

class PacketRoutes {
 public:
  struct Change {
    Picoseconds from;
    PacketPath path;
    std::int64_t payload = 0;  // Payload that took it, not counting what was sent again.
  };

  [[nodiscard]] bool empty() const { return changes_.empty(); }
  // Times of one connection rise.
  void add(std::uint32_t connection, Picoseconds from, const PacketPath& path) {
    std::vector<Change>& changes = changes_[connection];
    CHECK(changes.empty() || changes.back().from < from, "paths that change in another order");
    changes.push_back({.from = from, .path = path});
  }
  // The change that holds at `time`; nullptr for the path with which it began.
  [[nodiscard]] const Change* at(std::uint32_t connection, Picoseconds time) const {
    const auto found = changes_.empty() ? changes_.end() : changes_.find(connection);
    if (found == changes_.end()) {
      return nullptr;
    }
    const auto after = std::upper_bound(
        found->second.begin(), found->second.end(), time,
        [](Picoseconds wanted, const Change& change) { return wanted < change.from; });
    return after == found->second.begin() ? nullptr : &*(after - 1);
  }
  // The source sent so much by the path that holds at `time`.
  void count(std::uint32_t connection, Picoseconds time, std::int64_t payload) {
    for (auto change = changes_.at(connection).rbegin();; ++change) {
      if (change->from <= time) {
        change->payload += payload;
        return;
      }
    }
  }
  // Replaces what was counted for the changes of a connection, one after the other.
  void recount(std::uint32_t connection, const std::vector<Change>& counted) {
    if (!counted.empty()) {
      changes_.at(connection) = counted;
    }
  }
  [[nodiscard]] std::vector<Change> of(std::uint32_t connection) const {
    const auto found = changes_.find(connection);
    return found == changes_.end() ? std::vector<Change>() : found->second;
  }

 private:
  std::map<std::uint32_t, std::vector<Change>> changes_;  // Changes by connection.
};

}  // namespace trainyard
