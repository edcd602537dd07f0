// SPDX-License-Identifier: Apache-2.0
// Everything in the simulator is "at this time, wake this object".
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace trainyard {

class Simulator;

// Something that can be woken. The queue never owns it, so it must outlive its events. Its id is
// the order of construction: it represents the object in the fingerprint, because addresses differ
// between runs.
class EventHandler {
 public:
  EventHandler(const EventHandler&) = delete;
  EventHandler& operator=(const EventHandler&) = delete;

  // Runs at the simulated time that the event was scheduled for. Cannot fail; may only CHECK.
  virtual void on_event(std::uint64_t token) = 0;

  [[nodiscard]] std::uint32_t handler_id() const { return handler_id_; }

 protected:
  explicit EventHandler(Simulator& simulator);
  ~EventHandler() = default;

 private:
  std::uint32_t handler_id_;
};

// Order of events: time, then order of scheduling, which `sequence` records.
struct Event {
  SimTime time;
  EventHandler* handler;
  std::uint64_t token;
  std::uint64_t sequence;
};
static_assert(sizeof(Event) == 32);

}  // namespace trainyard
