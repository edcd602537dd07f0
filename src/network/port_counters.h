// SPDX-License-Identifier: Apache-2.0
// What operators read off switches and NICs, for engines that have packets and queues.
#pragma once

#include <cstdint>

#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

// Of the port that sends on a directed link, at the source of the link, over all priorities.
struct PortCounters {
  LinkId link = {};
  std::uint64_t packets = 0;  // Of data, that were sent.
  Bytes bytes = {};  // On the wire, with control packets and PFC frames, preambles and gaps.
  std::uint64_t ecn_marked = 0;
  std::uint64_t dropped = 0;                // For lack of room, or by a bit error of the link.
  std::uint64_t pause_frames_sent = 0;      // To stop what the other end sends to this port.
  std::uint64_t pause_frames_received = 0;  // Each stops a priority of this port.
  SimTime paused = {};                      // While at least one priority was stopped.
  Bytes queue_most = {};                    // That ever waited, in bytes of packets.
};

// Of one connection: its queue pair, at the end that sends.
struct ConnectionCounters {
  std::uint64_t packets = 0;  // Sent, those that were sent again included.
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t congestion_notifications = 0;  // CNPs received.
};

}  // namespace trainyard
