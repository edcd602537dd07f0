// SPDX-License-Identifier: Apache-2.0
// Hosts that pause the switches that send to them (hw/switch/slow_receiver.h), and watchdogs of
// ports that are paused for too long (hw/switch/pfc.h). docs/models/packet.md says what they do.
//
// A host's buffer lies at the port by which it answers: that one is told of every packet that
// arrives, and sends the pause frames. A watchdog looks at its port at multiples of its poll
// interval, but only while that can change anything, so that a port that is stopped for ever does
// not keep a run going.
#pragma once

#include <cstdint>

#include "hw/switch/pfc.h"
#include "hw/switch/slow_receiver.h"
#include "network/packet_parts/packet_port.h"

namespace trainyard {

// The state at the port that leads from the host into the fabric.
struct PausingHost {
  SlowReceiver receiver;
  Picoseconds from = 0;
  Picoseconds until = kNeverTime;
  // Place of the port in the list of all paths: packets find it by that.
  std::uint32_t position = 0;

  [[nodiscard]] bool counts(Picoseconds arrival) const {
    return arrival >= from && arrival < until;
  }
  // Returns the time at which it lets the switch go on if nothing more arrives; kNeverTime if it
  // does not stop it.
  [[nodiscard]] Picoseconds resume_time() const;
};

// Records for how long a port of a switch has been paused in each poll interval.
class PortGuard {
 public:
  explicit PortGuard(const WatchdogSettings& settings) : settings_(settings) {}

  // The port is stopped at `now`, or goes on, having been stopped since `since`; times do not fall.
  // It has begun to send so many packets.
  void on_change(Picoseconds now, bool was_paused, Picoseconds since, std::uint64_t packets);

  // The state of the port when it is polled.
  struct Polled {
    bool is_paused = false;
    Picoseconds since = 0;  // If it is.
    std::uint64_t packets = 0;
    bool has_packets = false;
  };
  // Polls at `now`, the end of an interval.
  PauseWatchdog::Event poll(Picoseconds now, const Polled& polled);

  // Returns whether polling it could change anything, for a port that is paused or has packets, or
  // not.
  [[nodiscard]] bool is_of_interest(bool is_paused, bool has_packets) const {
    return dog_.in_storm() ? !is_paused : is_paused && has_packets;
  }
  // The next poll that matters after something has changed at `now`: the first at least half an
  // interval later. One before that would see a port that was paused for less than half of it.
  [[nodiscard]] Picoseconds next_poll(Picoseconds now) const;

  bool is_armed = false;  // Its next poll is an alarm.
  std::uint64_t storms = 0;

 private:
  WatchdogSettings settings_;
  PauseWatchdog dog_;
  // The interval in which something has changed last.
  Picoseconds interval_ = -1;
  bool began_paused_ = false;
  std::uint64_t packets_ = 0;  // When it began, if it began paused.
  Picoseconds paused_ = 0;     // In it, up to the last change.
};

}  // namespace trainyard
