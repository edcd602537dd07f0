// SPDX-License-Identifier: Apache-2.0
#include "sim/simulator.h"

#include "sim/host/run_host.h"

namespace trainyard {

namespace {

// The watchdog: a run that takes this many events without the clock advancing is a loop of ours.
// The largest honest burst known is an all-to-all of 16,384 ranks that starts at one instant
// (2.7e8).
constexpr std::uint64_t kMaxEventsAtOneTime = 4'000'000'000;

// Whoever waits may end a run between two events, every so many: a few milliseconds.
constexpr std::uint64_t kEventsBetweenLooks = 65'536;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 32);
}

}  // namespace

EventHandler::EventHandler(Simulator& simulator) : handler_id_(simulator.handlers_++) {}

void Simulator::run_until(SimTime limit) {
  while (const std::optional<Event> event = queue_.pop(limit)) {
    if (event->time != now_) {
      now_ = event->time;
      processed_at_this_time_ = 0;
    }
    ++processed_;
    ++processed_at_this_time_;
    CHECK(processed_at_this_time_ < kMaxEventsAtOneTime, "simulated time does not advance");
    fingerprint_ = mix(mix(fingerprint_, static_cast<std::uint64_t>(now_.picoseconds())),
                       event->token ^ (std::uint64_t{event->handler->handler_id()} << 40));
    event->handler->on_event(event->token);
    if (processed_ % kEventsBetweenLooks == 0) [[unlikely]] {
      end_if_cancelled();
    }
  }
}

}  // namespace trainyard
