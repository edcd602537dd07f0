// SPDX-License-Identifier: Apache-2.0
// The contract of network.h, for each engine.
#include "support/catch.h"

#include "network/contract/network.h"

#include <array>
#include <memory>
#include <string>

#include "network/engines/make_network.h"
#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::array kEngines{Fidelity::Analytical, Fidelity::Flow};

// 100 Gb/s: 12,500 bytes take 1 us. Paths across the switch take 2 us.
const LinkSpec kLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kMicrosecond{12'500};

// Three hosts on a switch and one engine.
class World {
 public:
  explicit World(Fidelity fidelity)
      : fabric_(one_switch(3, kLink)),
        routing_(fabric_.topology, {}),
        network_(make_network(fidelity, simulator_, routing_)),
        done_(simulator_) {}

  ConnectionId connect(std::size_t source, std::size_t target) {
    return network_->connect(
        {.source = fabric_.hosts[source], .target = fabric_.hosts[target], .flow_label = 0});
  }
  void send(ConnectionId connection, Bytes size) {
    network_->send(connection, size, done_, next_token_++);
  }
  const std::vector<Woken>& run() {
    simulator_.run();
    return done_.events();
  }
  [[nodiscard]] const Recorder& done() const { return done_; }
  Simulator& simulator() { return simulator_; }
  Network& network() { return *network_; }

 private:
  TestFabric fabric_;
  Simulator simulator_;
  Routing routing_;
  std::unique_ptr<Network> network_;
  Recorder done_;
  std::uint64_t next_token_ = 0;
};

TEST_CASE("a message takes its bytes over the least bandwidth, then the latency of the path") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    world.send(world.connect(0, 1), kMicrosecond * 5);
    REQUIRE(world.run() == std::vector<Woken>{{7_us, 0}});
  }
}

TEST_CASE("an odd size on an idle path takes exactly transfer_time") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    for (const std::int64_t bits_per_second :
         {1'000'000'007L, 399'999'999'999L, 99'999'999'999'999L}) {
      for (const std::int64_t size : {1L, 7L, 12'345L, 1'000'003L, 2'000'000'011L}) {
        const Bandwidth rate(bits_per_second);
        const TestFabric fabric = one_switch(2, fabric_link(rate, 1_us));
        Simulator simulator;
        Routing routing(fabric.topology, {});
        const auto network = make_network(fidelity, simulator, routing);
        Recorder done(simulator);
        network->send(network->connect({.source = fabric.hosts[0], .target = fabric.hosts[1]}),
                      Bytes(size), done, 0);
        simulator.run();
        REQUIRE(done.events().front().time == transfer_time(Bytes(size), rate) + 2_us);
      }
    }
  }
}

TEST_CASE("a message of zero bytes takes the latency; a node reaches itself at once") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    world.send(world.connect(0, 1), 0_B);
    world.send(world.connect(2, 2), 0_B);
    world.send(world.connect(2, 2), 1_GiB);
    REQUIRE(world.run() == std::vector<Woken>{{SimTime(), 1}, {SimTime(), 2}, {2_us, 0}});
  }
}

TEST_CASE("no completion runs inside send") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    const ConnectionId there = world.connect(0, 1);
    const ConnectionId self = world.connect(2, 2);
    world.send(there, 0_B);
    world.send(self, 0_B);
    world.send(self, 1_MiB);
    world.send(there, 1_B);
    REQUIRE(world.done().events().empty());
    REQUIRE(world.run().size() == 4);
  }
}

TEST_CASE("messages of a connection follow one another while the latency overlaps") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    const ConnectionId connection = world.connect(0, 1);
    world.send(connection, kMicrosecond * 10);
    world.send(connection, kMicrosecond);
    world.send(connection, 0_B);
    world.send(connection, kMicrosecond * 2);
    REQUIRE(world.run() == std::vector<Woken>{{12_us, 0}, {13_us, 1}, {13_us, 2}, {15_us, 3}});
  }
}

TEST_CASE("a connection that has become idle starts anew") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    const ConnectionId connection = world.connect(0, 1);
    world.send(connection, kMicrosecond);
    REQUIRE(world.run().back() == Woken{3_us, 0});
    world.send(connection, kMicrosecond * 4);  // At 3 us.
    REQUIRE(world.run().back() == Woken{9_us, 1});
  }
}

TEST_CASE("completions of equal time and latency come in the order of send") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    const ConnectionId late = world.connect(0, 1);
    const ConnectionId early = world.connect(1, 2);
    const ConnectionId other = world.connect(2, 0);
    world.send(early, kMicrosecond * 3);
    world.send(late, kMicrosecond * 3);
    world.send(other, kMicrosecond * 3);
    REQUIRE(world.run() == std::vector<Woken>{{5_us, 0}, {5_us, 1}, {5_us, 2}});
    world.send(other, kMicrosecond);
    world.send(late, kMicrosecond);
    world.send(early, kMicrosecond);
    REQUIRE(world.run().size() == 6);
    REQUIRE(world.done().tokens() == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("nodes without a path are the user's mistake and named") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  builder.add_duplex_link(add_host(builder, hosts), left, kLink);
  builder.add_duplex_link(add_host(builder, hosts), right, kLink);
  const Topology topology = std::move(builder).build();
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    Simulator simulator;
    Routing routing(topology, {});
    const auto network = make_network(fidelity, simulator, routing);
    REQUIRE_THROWS_AS(network->connect({.source = hosts[0], .target = hosts[1]}), ConfigError);
    REQUIRE_THROWS_WITH(network->connect({.source = hosts[0], .target = hosts[1]}),
                        "no path leads from host 0 to host 1: the cluster does not connect them");
  }
}

TEST_CASE("statistics count messages, bytes and connections, and what each link carried") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    const ConnectionId a = world.connect(0, 1);
    const ConnectionId b = world.connect(1, 1);
    world.send(a, 100_B);
    world.send(a, 20_B);
    world.send(b, 3_B);
    world.send(a, 0_B);
    world.run();
    const NetworkStats stats = world.network().stats();
    REQUIRE(stats.messages == 4);
    REQUIRE(stats.bytes == 123_B);
    REQUIRE(stats.connections == 2);
    // Links 0 and 1 join host 0 to the switch and back, 2 and 3 host 1.
    const std::vector<LinkUse> use = world.network().link_use();
    REQUIRE(use.size() == 2);
    REQUIRE(use[0].link == LinkId(0));
    REQUIRE(use[0].bytes == 120_B);
    REQUIRE(use[1].link == LinkId(3));
    REQUIRE(use[1].bytes == 120_B);
  }
}

TEST_CASE("reserving memory changes nothing") {
  for (const Fidelity fidelity : kEngines) {
    INFO(to_string(fidelity));
    World world(fidelity);
    const ConnectionId before = world.connect(0, 1);
    world.network().reserve(1000);
    const ConnectionId after = world.connect(1, 2);
    world.send(before, kMicrosecond);
    world.send(after, kMicrosecond * 2);
    REQUIRE(world.run() == std::vector<Woken>{{3_us, 0}, {4_us, 1}});
  }
}

TEST_CASE("engines have names") {
  REQUIRE(to_string(Fidelity::Analytical) == "analytical");
  REQUIRE(to_string(Fidelity::Flow) == "flow");
  REQUIRE(to_string(Fidelity::Packet) == "packet");
}

}  // namespace
}  // namespace trainyard
