// SPDX-License-Identifier: Apache-2.0
// The forwarding path of the packet engine, written down once more as plainly as possible: an
// ordinary simulation with one map of events, all packets as objects, no windows. Slow on purpose.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet/packet_options.h"
#include "network/packet_parts/packet_port.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {

struct NaivePacketRun {
  std::vector<PacketStart> starts;  // Of every packet at every port, by time, then link.
  std::vector<SimTime> arrivals;    // By message.
};

// Store-and-forward or cut-through switches, queues without limit, credits of links. No congestion
// control, or a profile that ACKs drive, with marks where Kmin is Kmax. Rates are those of the
// line. `paths` are those of the connections.
[[nodiscard]] NaivePacketRun run_naive_packets(const TestFabric& fabric, const Traffic& traffic,
                                               const std::vector<std::vector<LinkId>>& paths,
                                               const PacketOptions& options);

}  // namespace trainyard
