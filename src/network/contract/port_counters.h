// SPDX-License-Identifier: Apache-2.0
// Lists the counters that operators read off switches and NICs, for engines that have packets and
// queues.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

// Counts what the port at the source of a directed link sent, over all priorities.
struct PortCounters {
  LinkId link = {};
  std::uint64_t packets = 0;  // Data packets that were sent.
  Bytes bytes = {};  // On the wire, with control packets and PFC frames, preambles and gaps.
  std::uint64_t ecn_marked = 0;
  // Packets dropped in all, and of these for lack of room, by a bit error of the link, since it has
  // failed, or in a pause storm that a watchdog has seen.
  std::uint64_t dropped = 0;
  std::uint64_t no_room = 0;
  std::uint64_t bit_errors = 0;
  std::uint64_t link_down = 0;
  std::uint64_t in_storms = 0;
  std::uint64_t pause_frames_sent = 0;      // To stop what the other end sends to this port.
  std::uint64_t pause_frames_received = 0;  // Each stops a priority of this port.
  std::uint64_t storms = 0;                 // Pauses that its watchdog cut short as storms.
  SimTime paused = {};                      // While at least one priority was stopped.
  SimTime starved = {};                     // Without credits for the largest packet.
  Bytes queue_most = {};                    // Most that ever waited, in bytes of packets.
  // Percentiles over time, where that was asked for: at most a quarter too high.
  std::optional<Bytes> queue_p50 = {};
  std::optional<Bytes> queue_p99 = {};
};

// Counts of one connection: its queue pair, at the end that sends.
struct ConnectionCounters {
  std::uint64_t packets = 0;  // Sent, those that were sent again included.
  std::uint64_t retransmitted = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t congestion_notifications = 0;  // CNPs received.
};

// A sample of a port that is stopped or whose queue is not empty, or was so at the sample before.
struct QueueSample {
  SimTime time;
  LinkId link;
  Bytes bytes;  // Bytes of data frames that wait.
  bool is_paused;
};

// A sample of a connection that has messages to complete, or sent something since the sample
// before.
struct RateSample {
  SimTime time;
  ConnectionId connection;
  NodeId source;
  NodeId target;
  Bandwidth limit;  // Limit by congestion control and by the connection's own stage of the path.
  Bandwidth sent;   // Payload that left the source since the sample before.
};

// Each in order of time, then of links or connections.
struct PacketSamples {
  std::vector<QueueSample> queues;
  std::vector<RateSample> rates;
};

}  // namespace trainyard
