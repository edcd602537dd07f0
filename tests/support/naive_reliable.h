// SPDX-License-Identifier: Apache-2.0
// Lossy runs of the packet engine, written down once more as plainly as possible: an ordinary
// simulation with one map of events, with ACKs, retransmission, and all ways to lose a packet. Slow
// on purpose. The state machines of the ends and the buffer of a switch are those of src/hw.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "network/packet/packet_options.h"
#include "network/packet_parts/packet_port.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {

struct NaiveReliableRun {
  std::vector<PacketStart> starts;  // Of data, ACKs and NAKs at every port, by time, then link.
  std::vector<std::optional<SimTime>> arrivals;  // By message; nothing if it never was complete.
  std::uint64_t drops = 0;                       // For lack of room.
  std::uint64_t bit_errors = 0;
  std::uint64_t link_down = 0;
  std::uint64_t resent = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t failures = 0;
};

// Cables that fail, each with both of its links.
using NaiveFailures = std::vector<std::pair<LinkId, SimTime>>;

// A connection that takes another path from some time on, and its answers the way back of that. Of
// one connection in order of time.
struct NaiveReroute {
  std::size_t connection = 0;
  SimTime from;
  std::vector<LinkId> path;
};

// Store-and-forward or cut-through switches without PFC, no congestion control. Rates are those of
// the line. `paths` are those of the connections, none of them empty.
[[nodiscard]] NaiveReliableRun run_naive_reliable(const TestFabric& fabric, const Traffic& traffic,
                                                  const std::vector<std::vector<LinkId>>& paths,
                                                  const PacketOptions& options,
                                                  const NaiveFailures& failures = {},
                                                  const std::vector<NaiveReroute>& reroutes = {});

}  // namespace trainyard
