// SPDX-License-Identifier: Apache-2.0
// The records of the packet engine: packets, what is under way on a link, and the port that sends.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

#include "network/packet_ring.h"

namespace trainyard {

// Times inside the engine are plain picoseconds: sums of a few link times, far from overflow.
using Picoseconds = std::int64_t;
inline constexpr Picoseconds kNeverTime = std::numeric_limits<Picoseconds>::max();
inline constexpr std::uint32_t kNoIndex = 0xffff'ffff;

// Copied from queue to queue: as large as an index with what one would have to look up at once.
struct Packet {
  // Flags.
  static constexpr std::uint8_t kEndsMessage = 1;

  std::uint32_t connection;
  std::uint32_t position;  // Of the next port that it takes, in the list of all paths.
  std::uint32_t sequence;  // Of the packet in its connection, modulo 2^32.
  std::uint16_t wire;      // Bytes on the line.
  std::uint8_t left;       // Links that it has still to take.
  std::uint8_t flags;

  [[nodiscard]] bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(Packet) == 16);

// A packet that is due somewhere.
struct Arrival {
  Picoseconds time;
  Packet packet;
};

// A directed link and the queue before it.
struct Port {
  Picoseconds free_at = 0;        // End of the last packet that was begun.
  Picoseconds full_time = 0;      // That a full packet takes.
  Picoseconds through_delay = 0;  // From its end to the next queue: the link, then the node.
  Picoseconds end_delay = 0;      // From its end to the target, where the path ends.
  Ring<Packet> queue;
  Ring<Arrival> wire;             // Sent, not yet handed to the next port; in order of time.
  std::vector<Arrival> arrivals;  // Of the window that is being worked on.
  std::uint64_t due = ~std::uint64_t{0};      // The window for which it is in the calendar.
  std::uint64_t visited = ~std::uint64_t{0};  // The window in which it last had work.
  std::uint64_t bits_per_second = 0;
  std::int64_t queued_bytes = 0;
  std::uint32_t source = kNoIndex;  // Of connections that begin here.
  std::uint32_t link = 0;
  bool cuts_through = false;  // The node at the end of the link.
  bool own_turn = false;      // Own packets and those that pass through take turns.
  // Counters.
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  std::int64_t most_queued = 0;
};

// A packet that a port began to send, for tests that compare engines packet by packet.
struct PacketStart {
  Picoseconds time;
  std::uint32_t link;
  std::uint32_t connection;
  std::uint32_t sequence;
  friend auto operator<=>(const PacketStart&, const PacketStart&) = default;
};

}  // namespace trainyard
