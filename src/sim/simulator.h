// SPDX-License-Identifier: Apache-2.0
// The clock and the queue. Passed by reference to whatever takes part; never global.
#pragma once

#include <cstdint>

#include "sim/event.h"
#include "sim/event_queue.h"

namespace trainyard {

class Simulator {
 public:
  Simulator() = default;
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  [[nodiscard]] SimTime now() const { return now_; }

  // Wakes `handler` with `token` after `delay`, which must not be negative. Events of equal time
  // run in the order in which they were scheduled.
  void schedule(SimTime delay, EventHandler& handler, std::uint64_t token) {
    schedule_at(now_ + delay, handler, token);
  }
  void schedule_at(SimTime time, EventHandler& handler, std::uint64_t token) {
    queue_.push({.time = time, .handler = &handler, .token = token, .sequence = scheduled_++});
  }

  // Runs until no event is left.
  void run() { run_until(SimTime::max()); }
  // Runs all events up to and including `limit`; the clock then stands at the last one of them.
  void run_until(SimTime limit);

  [[nodiscard]] std::uint64_t events_processed() const { return processed_; }

  // A hash over (time, handler id, token) of every event so far: equal for equal runs, whatever the
  // compiler and the build.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  friend class EventHandler;

  EventQueue queue_;
  SimTime now_;
  std::uint64_t scheduled_ = 0;
  std::uint64_t processed_ = 0;
  std::uint64_t fingerprint_ = 0x9e3779b97f4a7c15;
  std::uint64_t processed_at_this_time_ = 0;
  std::uint32_t handlers_ = 0;
};

}  // namespace trainyard
