// SPDX-License-Identifier: Apache-2.0
// Runs of the packet engine with several classes of data, written down once more as plainly as
// possible: an ordinary simulation with one map of events. Slow on purpose. The scheduler of a port
// and the buffer of a switch are those of src/hw.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "network/packet/packet_lanes.h"
#include "network/packet/packet_options.h"
#include "network/packet_parts/packet_port.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {

struct NaiveLanesRun {
  std::vector<PacketStart> starts;  // Of every packet at every port, by time, then link.
  std::vector<std::optional<SimTime>> arrivals;  // By message; nothing if a packet of it was lost.
  std::uint64_t pauses = 0;                      // XOFF frames.
  std::uint64_t drops = 0;
  std::uint64_t storms = 0;  // That watchdogs have seen.
};

// Switches that store or cut through, PFC or credits, hosts that pause, watchdogs, cables that fail
// (without PFC); neither congestion control nor ACKs. Where the options have no lanes all is lane 3
// of `classes`. Rates are those of the line. `paths` and `lanes` are those of the connections.
[[nodiscard]] NaiveLanesRun run_naive_lanes(const TestFabric& fabric, const Traffic& traffic,
                                            const std::vector<std::vector<LinkId>>& paths,
                                            const std::vector<std::uint8_t>& lanes,
                                            const PacketOptions& options,
                                            const LaneOptions& classes);

// The same with several paths of as many links for each connection, among which switches choose.
// What is lost leaves its message incomplete, and all behind it.
using NaiveWays = std::vector<std::vector<std::vector<LinkId>>>;
[[nodiscard]] NaiveLanesRun run_naive_ways(const TestFabric& fabric, const Traffic& traffic,
                                           const NaiveWays& ways,
                                           const std::vector<std::uint8_t>& lanes,
                                           const PacketOptions& options,
                                           const LaneOptions& classes);

}  // namespace trainyard
