// SPDX-License-Identifier: Apache-2.0
// Random traffic between different hosts, and runs of it on the packet engine of which every packet
// is known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/catch.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/packet_runs.h"

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
  std::vector<PacketStart> starts = {};               // By time, then link.
  std::vector<std::optional<SimTime>> arrivals = {};  // By message; nothing if it was not complete.
  PacketStats stats = {};
  std::uint64_t exact_windows = 0;
  std::vector<LinkId> deadlock = {};
  std::map<std::uint32_t, SimTime> paused = {};  // By link.
  SimTime starved = {};                          // All ports.
  std::optional<std::string> complaint = {};     // Of run_traced().

  void arrive(std::uint64_t message, SimTime time) {
    CHECK(!arrivals[message], "a message arrived twice");
    arrivals[message] = time;
  }
  void finish(const PacketEngine& engine) {
    std::sort(starts.begin(), starts.end());
    stats = engine.stats();
    exact_windows = engine.counts().exact_windows;
    deadlock = engine.deadlock();
    for (const Port& port : engine.fabric().ports()) {
      paused[port.link] = SimTime(engine.paused_time(port));
      starved += SimTime(engine.starved_time(port));
    }
  }
  [[nodiscard]] bool is_whole() const {
    return std::ranges::all_of(arrivals, [](const auto& time) { return time.has_value(); });
  }
};

// On the network, routed.
[[nodiscard]] inline TracedRun run_traced(const TestFabric& fabric, const Traffic& traffic,
                                          const PacketOptions& options,
                                          const RoutingOptions& routed = kTestRouting,
                                          SimTime until = SimTime::max()) {
  Simulator simulator;
  Routing routing(fabric.topology, routed);
  PacketNetwork network(simulator, routing, options);
  TracedRun run;
  network.engine().trace(&run.starts);
  run.arrivals.resize(traffic.messages.size());
  for (const Woken& event : play_until(simulator, network, fabric, traffic, until)) {
    run.arrive(event.token, event.time);
  }
  run.finish(network.engine());
  run.complaint = network.complaint();
  REQUIRE(run.is_whole() == !run.complaint);
  return run;
}

// On an engine to which the connections have been added. All messages are known from the start.
[[nodiscard]] inline TracedRun run_on(PacketEngine& engine, const Traffic& traffic) {
  TracedRun run;
  engine.trace(&run.starts);
  for (const TestMessage& message : traffic.messages) {
    engine.send(message.connection,
                {.time = message.time.picoseconds(), .size = message.size.count()});
  }
  run.arrivals.resize(traffic.messages.size());
  for (const PacketEngine::Completion& completion : run_windows(engine)) {
    run.arrive(completion.order, SimTime(completion.time));
  }
  run.finish(engine);
  return run;
}

// On an engine of its own, connection i by paths[i] in class lanes[i].
[[nodiscard]] inline TracedRun run_on_paths(const TestFabric& fabric, const Traffic& traffic,
                                            const std::vector<std::vector<LinkId>>& paths,
                                            const std::vector<std::uint8_t>& lanes,
                                            const PacketOptions& options) {
  PacketEngine engine(fabric.topology, options);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    static_cast<void>(engine.add_connection(paths[i], lanes[i]));
  }
  return run_on(engine, traffic);
}

// Doubles the buffer as long as it is refused as too small for the headroom of the ports on these
// paths.
inline void make_room(const TestFabric& fabric, const std::vector<std::vector<LinkId>>& paths,
                      PacketOptions& options) {
  while (true) {
    try {
      PacketEngine engine(fabric.topology, options);
      for (const std::vector<LinkId>& path : paths) {
        static_cast<void>(engine.add_connection(path));
      }
      return;
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).find("expected a buffer") != std::string::npos);
      options.buffer = options.buffer * 2;
    }
  }
}

}  // namespace trainyard
