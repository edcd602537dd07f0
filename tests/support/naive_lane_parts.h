// SPDX-License-Identifier: Apache-2.0
// The records of the ordinary simulation of naive_lanes.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "hw/switch/pfc.h"
#include "hw/switch/priority_scheduler.h"
#include "hw/switch/shared_buffer.h"
#include "hw/switch/slow_receiver.h"
#include "network/packet/packet_lanes.h"
#include "network/packet/packet_options.h"
#include "sim/ids.h"
#include "topology/graph/topology.h"

namespace trainyard {

inline constexpr Bytes kLaneAround{20};  // Preamble and gap, which no switch stores.

struct NaiveLanePacket {
  std::size_t connection = 0;
  std::uint32_t sequence = 0;
  std::size_t message = 0;
  bool last = false;
  Bytes wire;
  std::size_t hop = 0;
  std::vector<LinkId> path;
};

struct NaiveLaneFrame {
  std::uint8_t lane = 0;
  bool stop = false;
  bool is_of_host = false;  // Of all lossless lanes.
};

// What reaches a queue, or a port that it stops, and the order of what does so at one instant.
struct NaiveLaneArrival {
  std::uint32_t by = 0;
  std::optional<NaiveLaneFrame> frame;
  std::uint32_t stopped = 0;  // The link of the port that the frame is for.
  NaiveLanePacket packet;
  bool is_at_host = false;  // That pauses, where it is counted.
};

struct NaiveLaneSender {
  std::deque<std::size_t> messages;
  Bytes sent;
  std::uint32_t sequence = 0;
  bool in_line = false;
  std::uint32_t expected = 0;  // At the target, which takes nothing behind a gap,
  std::map<std::uint32_t, NaiveLanePacket> early = {};  // but for what switches have sent round it.
};

// Credits on their way back to the sender of a link.
struct NaiveLaneCredits {
  std::uint32_t link = 0;
  std::uint32_t lane = 0;
  Bytes bytes;
};

// What a watchdog sees of a port, from all that has happened to it.
struct NaiveGuard {
  PauseWatchdog dog;
  std::vector<SimTime> changes = {};  // Stopped, going on, stopped, ...
  std::vector<SimTime> starts = {};   // Of packets.
  bool drops = false;
  bool forces = false;

  [[nodiscard]] bool is_paused_at(SimTime time) const {
    return std::ranges::count_if(changes, [&](SimTime at) { return at <= time; }) % 2 != 0;
  }
  // Up to `now`, over one interval.
  PauseWatchdog::Event poll(const WatchdogSettings& settings, SimTime now, bool has_packets) {
    const SimTime begin = now - settings.poll;
    SimTime paused;
    for (std::size_t i = 0; i < changes.size(); i += 2) {
      const SimTime end = i + 1 < changes.size() ? changes[i + 1] : now;
      paused += std::max(SimTime(), std::min(now, end) - std::max(begin, changes[i]));
    }
    const bool sent =
        !is_paused_at(begin) || std::ranges::any_of(starts, [&](SimTime at) { return at > begin; });
    return dog.poll(settings, {.has_packets = has_packets, .sent = sent, .paused = paused});
  }
};

struct NaiveLanePort {
  struct Lane {
    std::deque<NaiveLanePacket> queue;
    std::deque<std::size_t> line;
    bool own_turn = false;
    bool is_paused = false;
    Bytes credits;  // That may still be sent, where links have credits.
  };
  SimTime free_at;
  std::array<Lane, LaneOptions::kLanes> lanes;
  std::optional<PriorityScheduler> scheduler;
  std::deque<NaiveLaneFrame> frames;
  std::optional<SlowReceiver> host;  // From which it leads.
  SimTime until;
  std::optional<NaiveGuard> guard;
  // The packet that is leaving, where a buffer holds it.
  Bytes leaving;
  SimTime left_at;
  BufferPlace place;
};

// Of what comes by the link, whose largest packet has so many bytes on the line.
[[nodiscard]] inline IngressLimits ingress_limits(const Topology& topology, LinkId link,
                                                  Bytes largest, const PacketOptions& options) {
  const Link& record = topology.link(link);
  const Bytes frame = largest - kLaneAround;
  return {.lossless = true,
          .reserve = options.reserve,
          .headroom = pfc_headroom({.rate = record.spec.bandwidth,
                                    .delay = record.spec.latency,
                                    .mtu = frame,
                                    .pipeline = topology.node(record.target).latency}) +
                      frame,
          .alpha = options.alpha_exponent,
          .resume_offset = options.resume_offset};
}

}  // namespace trainyard
