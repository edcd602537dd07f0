// SPDX-License-Identifier: Apache-2.0
// A run ends in a PFC deadlock where buffers wait for each other, and says so.
#include "support/catch.h"

#include <algorithm>
#include <array>

#include "network/packet/packet.h"
#include "support/fabrics.h"
#include "support/packet_runs.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kLink = fabric_link(gigabits_per_second(100), 200_ns);

PacketOptions small_buffers() {
  return lossless_options(800'000_B);
}

// Switches in a ring, two hosts on each.
struct Circle {
  Topology topology;
  std::vector<std::array<LinkId, 2>> up;    // From the hosts of each switch.
  std::vector<std::array<LinkId, 2>> down;  // To them.
  std::vector<LinkId> on;                   // To the next switch.
};

Circle circle_of(std::size_t switches) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> nodes;
  Circle circle{.topology = TopologyBuilder().build(), .up = {}, .down = {}, .on = {}};
  for (std::size_t i = 0; i < switches; ++i) {
    nodes.push_back(add_switch(builder, "switch " + std::to_string(i)));
    std::array<LinkId, 2> up;
    std::array<LinkId, 2> down;
    for (std::size_t host = 0; host < 2; ++host) {
      up[host] = builder.add_duplex_link(add_host(builder, hosts), nodes.back(), kLink);
      down[host] = LinkId(up[host].value() + 1);
    }
    circle.up.push_back(up);
    circle.down.push_back(down);
  }
  for (std::size_t i = 0; i < switches; ++i) {
    circle.on.push_back(builder.add_duplex_link(nodes[i], nodes[(i + 1) % switches], kLink));
  }
  circle.topology = std::move(builder).build();
  return circle;
}

// Both hosts of each switch send to the hosts `steps` switches on, the same way round.
void send_round(PacketEngine& engine, const Circle& circle, std::size_t steps) {
  const std::size_t count = circle.on.size();
  std::vector<std::uint32_t> connections;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t host = 0; host < 2; ++host) {
      std::vector<LinkId> path{circle.up[i][host]};
      for (std::size_t step = 0; step < steps; ++step) {
        path.push_back(circle.on[(i + step) % count]);
      }
      path.push_back(circle.down[(i + steps) % count][host]);
      connections.push_back(engine.add_connection(path));
    }
  }
  for (const std::uint32_t connection : connections) {
    engine.send(connection, {.time = 0, .size = 20'000'000});
  }
  static_cast<void>(run_windows(engine));
}

TEST_CASE("flows round a circle of switches stop each other for ever, and the cycle is named") {
  const Circle circle = circle_of(4);
  PacketEngine engine(circle.topology, small_buffers());
  send_round(engine, circle, 2);
  REQUIRE(engine.incomplete() > 0);
  std::vector<LinkId> cycle = engine.deadlock();
  REQUIRE(cycle.size() == 4);
  std::sort(cycle.begin(), cycle.end());
  std::vector<LinkId> expected = circle.on;
  std::sort(expected.begin(), expected.end());
  REQUIRE(cycle == expected);
  REQUIRE(engine.stats().drops == 0);
}

TEST_CASE("where no buffer waits for itself the same traffic ends") {
  const Circle circle = circle_of(4);
  PacketEngine engine(circle.topology, small_buffers());
  send_round(engine, circle, 1);  // Nobody takes two links of the circle.
  REQUIRE(engine.incomplete() == 0);
  REQUIRE(engine.deadlock().empty());
  REQUIRE(engine.stats().pauses > 0);
}

TEST_CASE("credits stop a circle of flows just the same") {
  const Circle circle = circle_of(5);
  PacketOptions options{.verb = RdmaVerb::Send, .rates = RateMeaning::Line};
  options.fabric_credits = 100'000_B;
  PacketEngine around(circle.topology, options);
  send_round(around, circle, 2);
  std::vector<LinkId> cycle = around.deadlock();
  std::sort(cycle.begin(), cycle.end());
  REQUIRE(cycle == circle.on);
  PacketEngine beside(circle.topology, options);
  send_round(beside, circle, 1);
  REQUIRE(beside.incomplete() == 0);
}

TEST_CASE("the complaint says by what the links of a deadlock are stopped") {
  const Circle circle = circle_of(4);
  Simulator simulator;
  Routing routing(circle.topology, {});
  PacketNetwork paused(simulator, routing, small_buffers());
  send_round(paused.engine(), circle, 2);
  REQUIRE(paused.complaint()->find("; PFC deadlock, each link") != std::string::npos);
  REQUIRE(paused.port_counters()->front().starved == SimTime());

  PacketOptions options = line_options();
  options.fabric_credits = 100'000_B;
  PacketNetwork starved(simulator, routing, options);
  send_round(starved.engine(), circle, 2);
  REQUIRE(starved.complaint()->find("; credit deadlock, each link") != std::string::npos);
  const auto counters = starved.port_counters();
  REQUIRE(std::ranges::any_of(*counters, [](const PortCounters& port) {
    return port.starved > SimTime() && port.paused == SimTime();
  }));
}

TEST_CASE("what does not complete is complained of") {
  PacketOptions options = line_options();
  options.buffer = 100'000_B;
  const TestFabric fabric = one_switch(5, kLink);
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, options);
  REQUIRE(!network.complaint());
  Recorder done(simulator);
  for (std::uint32_t i = 0; i < 4; ++i) {
    network.send(network.connect({.source = fabric.hosts[i], .target = fabric.hosts[4]}),
                 4096_B * 100, done, i);
  }
  simulator.run();
  REQUIRE(network.complaint()->find("packets were lost") != std::string::npos);
}

}  // namespace
}  // namespace trainyard
