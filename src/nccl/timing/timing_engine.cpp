// SPDX-License-Identifier: Apache-2.0
// Chooses the replay that runs: on the ports of servers alone, or with an engine between nodes.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "nccl/timing/timing_state.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

// Units that an engine may have to do with in one run: some ten seconds, and 2 GiB of state.
constexpr std::uint64_t kMaxEngineUnits = 16'777'216;

}  // namespace

std::uint64_t Timer::State::units_one_by_one(std::size_t lanes) const {
  const auto each = [lanes](std::uint64_t all, std::uint64_t max) {
    return std::clamp<std::uint64_t>(all / std::max<std::size_t>(1, lanes), 64, max);
  };
  // About a tenth of a second for all of them; enough of each to see past the filling of the FIFOs.
  // A message is up to 256 packets: as many of each lane as fill its FIFO some times over.
  return engine && engine->fidelity == Fidelity::Packet ? each(100'000, 384) : each(400'000, 1'536);
}

SimTime Timer::State::run_first(const ReplayNetwork& made, std::span<const ReplayLane> lanes,
                                std::uint64_t max_units, const ReplayWatch& watch) {
  if (!engine) {
    return replay(made, lanes, max_units, watch);
  }
  std::uint64_t units = 0;
  for (const ReplayLane& lane : lanes) {
    units += std::min(max_units, lane.program->units());
  }
  if (units > kMaxEngineUnits) {
    throw ConfigError(fmt::format(
        "NCCL over the {} engine: expected at most {} units to run one by one, found {} of {} "
        "thread blocks; use fewer ranks, or no --fidelity",
        to_string(engine->fidelity), kMaxEngineUnits, units, lanes.size()));
  }
  return replay_over(*engine, complete.routing(), made, lanes, max_units, outcome, watch);
}

SimTime Timer::State::run(const ReplayNetwork& made, std::span<const ReplayLane> lanes) {
  ReplayWatch watch = recording(lanes);  // It sees the first run, which is the longest.
  const SimTime time =
      replay_in_line(lanes, units_one_by_one(lanes.size()), [&](std::uint64_t max_units) {
        return run_first(made, lanes, max_units, std::exchange(watch, nullptr));
      });
  traced += time;
  return time;
}

ReplayWatch Timer::State::recording(std::span<const ReplayLane> lanes) {
  if (trace == nullptr) {
    return {};
  }
  std::vector<TraceTrackId> tracks;
  for (const ReplayLane& lane : lanes) {
    tracks.push_back(trace->add_track(
        fmt::format("rank {}", lane.rank),
        fmt::format("channel {}{}{}", lane.channel, *lane.work == '\0' ? "" : " ", lane.work)));
  }
  return [this, from = traced, tracks = std::move(tracks)](
             std::uint32_t lane, const ReplayUnit& unit, SimTime start, SimTime end) {
    const bool receives = unit.receives != kNoEnds;
    const bool sends = unit.sends != kNoEnds;
    const char* const name = receives && sends ? "pass on" : receives ? "receive" : "send";
    trace->add_span(tracks[lane], name, from + start, from + end,
                    {.category = "unit", .bytes = unit.bytes});
  };
}

}  // namespace trainyard::nccl
