// SPDX-License-Identifier: Apache-2.0
// Random traffic between different hosts, and a run of it on the packet engine of which every
// packet is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/packet.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {

// random_traffic() without messages of a host to itself, of a size divided by this.
[[nodiscard]] inline Traffic traffic_between_hosts(const TestFabric& fabric, RandomStream& random,
                                                   std::int64_t divisor) {
  Traffic traffic = random_traffic(fabric, random);
  const auto hosts = static_cast<std::uint32_t>(fabric.hosts.size());
  for (TestConnection& connection : traffic.connections) {
    if (connection.source == connection.target) {
      connection.target = (connection.source + 1) % hosts;
    }
  }
  for (TestMessage& message : traffic.messages) {
    message.size = Bytes(message.size.count() / divisor);
  }
  return traffic;
}

struct TracedRun {
  std::vector<PacketStart> starts;               // By time, then link.
  std::vector<std::optional<SimTime>> arrivals;  // By message; nothing if it never was complete.
  PacketStats stats;
  std::optional<std::string> complaint;
};

[[nodiscard]] inline TracedRun run_traced(const TestFabric& fabric, const Traffic& traffic,
                                          const PacketOptions& options) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  TracedRun run;
  network.engine().trace(&run.starts);
  run.arrivals.resize(traffic.messages.size());
  for (const Woken& event : play_until(simulator, network, fabric, traffic, SimTime::max())) {
    run.arrivals[event.token] = event.time;
  }
  std::sort(run.starts.begin(), run.starts.end());
  run.stats = network.stats().packets;
  run.complaint = network.complaint();
  return run;
}

}  // namespace trainyard
