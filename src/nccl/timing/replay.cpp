// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/replay.h"

#include <optional>

#include "nccl/timing/replay_core.h"
#include "sim/event_queue.h"
#include "sim/host/run_host.h"

namespace trainyard::nccl {
namespace {

// Events in a queue of their own.
struct OwnQueue {
  static constexpr bool kHasNetwork = false;
  EventQueue events = {};
  std::uint64_t order = 0;

  void push(std::int64_t time, std::uint64_t token) {
    events.push({.time = SimTime(time), .handler = nullptr, .token = token, .sequence = order++});
  }
};

}  // namespace

SimTime replay(const ReplayNetwork& network, std::span<const ReplayLane> lanes,
               std::uint64_t max_units, const ReplayWatch& watch) {
  OwnQueue queue;
  ReplayCore<OwnQueue> core(queue, network, lanes, max_units, watch);
  core.start();
  std::uint64_t handled = 0;
  while (const std::optional<Event> event = queue.events.pop(SimTime::max())) {
    core.handle(event->token, event->time.picoseconds());
    constexpr std::uint64_t kEventsBetweenLooks = 65'536;  // A few milliseconds.
    if (++handled % kEventsBetweenLooks == 0) [[unlikely]] {
      end_if_cancelled();
    }
  }
  return core.end();
}

SimTime replay_in_line(std::span<const ReplayLane> lanes, std::uint64_t exact_units,
                       const std::function<SimTime(std::uint64_t)>& run) {
  CHECK(exact_units >= 2, "too few units to see a slope");
  std::uint64_t longest = 0;
  for (const ReplayLane& lane : lanes) {
    longest = std::max(longest, lane.program->units());
  }
  const SimTime exact = run(exact_units);
  if (longest <= exact_units) {
    return exact;
  }
  const std::uint64_t half = exact_units / 2;
  const SimTime before = run(half);
  const double slope = (exact - before).microseconds() / static_cast<double>(exact_units - half);
  const double rest = slope * static_cast<double>(longest - exact_units);
  return exact + SimTime(static_cast<std::int64_t>(rest * 1e6));
}

}  // namespace trainyard::nccl
