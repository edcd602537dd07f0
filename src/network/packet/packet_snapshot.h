// SPDX-License-Identifier: Apache-2.0
// Ports and connections at an instant, so that they can be compared with what they are at another
// one: whatever decides what comes next, with times that count from that instant.
//
// It has what there is with plain fast-forward: no control but pacing, nothing that is sent again,
// no credits, lanes or pauses, switches that are open. Counters, numbers of packets and the names
// of messages are not compared, as nothing depends on them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/packet/packet_fabric.h"
#include "network/packet/packet_messages.h"
#include "network/packet/packet_transport.h"

namespace trainyard {

struct PacketSnapshot {
  // A message that was sent and is not complete, by its number in the phase.
  struct Pending {
    std::uint64_t number;
    std::uint32_t connection;
    std::int64_t size;
  };
  struct Line {
    std::uint64_t order;  // The message's that it sends; kNeverWindow if there is none.
    std::int64_t unsent;
    std::uint32_t sequence;
  };
  struct Tally {
    std::uint64_t packets;
    std::uint64_t bytes;
  };

  Picoseconds time = 0;
  std::uint64_t sends = 0;  // Messages that were sent before.
  std::vector<std::uint64_t> words = {};
  // Sorted by the source in which they take turns, then by order of send(), which decides between
  // equals.
  std::vector<Pending> pending = {};
  std::vector<Line> lines = {};     // One for each connection, in their order.
  std::vector<Tally> tallies = {};  // One for each port.

  // Adds ports, switches, connections and what is under way, which are all that matter to each
  // other, as they are at `time`, before which all has been done. Messages that were sent at that
  // time or later are left out.
  struct Parts {
    std::span<const std::uint32_t> ports;
    std::span<const std::uint32_t> nodes;
    std::span<const std::uint32_t> connections;
    std::vector<Due> under_way;
  };
  void add(const Parts& parts, const PacketFabric& fabric, const PacketSenders& senders,
           const PacketTargets& targets, const PacketMessages& messages);
  // Returns whether the same will come of this state and of a later one, as long as the same is
  // sent: a message that is still to be sent for a long time may be shorter then.
  [[nodiscard]] bool repeats_in(const PacketSnapshot& later) const;
};

}  // namespace trainyard
