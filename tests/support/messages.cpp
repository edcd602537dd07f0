// SPDX-License-Identifier: Apache-2.0
#include "support/messages.h"

#include <algorithm>

#include "network/engines/make_network.h"
#include "sim/check.h"
#include "support/recorder.h"

namespace trainyard {

Traffic random_traffic(const TestFabric& fabric, RandomStream& random) {
  Traffic traffic;
  const std::uint64_t hosts = fabric.hosts.size();
  const std::uint64_t connections = 1 + random.below(10);
  for (std::uint64_t i = 0; i < connections; ++i) {
    const auto source = static_cast<std::uint32_t>(random.below(hosts));
    auto target = static_cast<std::uint32_t>(random.below(hosts));
    if (target == source && random.below(8) != 0) {
      target = static_cast<std::uint32_t>((source + 1) % hosts);
    }
    traffic.connections.push_back({.source = source,
                                   .target = target,
                                   .flow_label = static_cast<std::uint32_t>(random.below(4))});
  }
  SimTime time;
  const std::uint64_t messages = 1 + random.below(24);
  for (std::uint64_t i = 0; i < messages; ++i) {
    if (random.below(2) == 0) {
      time += SimTime(static_cast<std::int64_t>(random.below(20'000'000)));
    }
    const std::uint64_t size = random.below(10) == 0 ? 0 : 1 + random.below(4'000'000);
    traffic.messages.push_back({.connection = static_cast<std::uint32_t>(random.below(connections)),
                                .time = time,
                                .size = Bytes(static_cast<std::int64_t>(size))});
  }
  return traffic;
}

std::vector<Woken> play_until(Simulator& simulator, Network& network, const TestFabric& fabric,
                              const Traffic& traffic, SimTime time) {
  Recorder done(simulator);
  std::vector<ConnectionId> connections;
  for (const TestConnection& connection : traffic.connections) {
    connections.push_back(network.connect({.source = fabric.hosts[connection.source],
                                           .target = fabric.hosts[connection.target],
                                           .flow_label = connection.flow_label,
                                           .priority = connection.priority}));
  }

  class Sender final : public EventHandler {
   public:
    Sender(Simulator& owner, Network& target, Recorder& recorder, const Traffic& what,
           const std::vector<ConnectionId>& ids)
        : EventHandler(owner), network_(target), done_(recorder), traffic_(what), ids_(ids) {}
    void on_event(std::uint64_t token) override {
      const TestMessage& message = traffic_.messages[token];
      network_.send(ids_[message.connection], message.size, done_, token);
    }

   private:
    Network& network_;
    Recorder& done_;
    const Traffic& traffic_;
    const std::vector<ConnectionId>& ids_;
  };
  Sender sender(simulator, network, done, traffic, connections);
  for (std::uint64_t i = 0; i < traffic.messages.size(); ++i) {
    simulator.schedule_at(traffic.messages[i].time, sender, i);
  }
  simulator.run_until(time);
  return done.events();
}

std::vector<Woken> play(Simulator& simulator, Network& network, const TestFabric& fabric,
                        const Traffic& traffic) {
  std::vector<Woken> events = play_until(simulator, network, fabric, traffic, SimTime::max());
  CHECK(events.size() == traffic.messages.size(), "a message did not arrive, or arrived twice");
  return events;
}

MessagesRun run_traffic(const TestFabric& fabric, const Traffic& traffic, Fidelity fidelity) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  const auto network = make_network(fidelity, simulator, routing);
  MessagesRun run;
  run.arrivals.resize(traffic.messages.size());
  for (const Woken& event : play(simulator, *network, fabric, traffic)) {
    run.arrivals[event.token] = event.time;
    run.order.push_back(event.token);
  }
  run.link_use = network->link_use();
  run.stats = network->stats();
  run.finish = std::max(simulator.now(), network->quiet_time());
  run.fingerprint = simulator.fingerprint();
  return run;
}

std::vector<std::vector<LinkId>> paths_of(const TestFabric& fabric, const Traffic& traffic) {
  Routing routing(fabric.topology, kTestRouting);
  std::vector<std::vector<LinkId>> paths(traffic.connections.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const TestConnection& connection = traffic.connections[i];
    CHECK(routing.route(fabric.hosts[connection.source], fabric.hosts[connection.target],
                        connection.flow_label, paths[i]),
          "the fabric does not connect two hosts");
  }
  return paths;
}

}  // namespace trainyard
