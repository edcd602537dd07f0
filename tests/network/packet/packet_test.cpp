// SPDX-License-Identifier: Apache-2.0
// The packet engine as a Network.
#include "support/catch.h"

#include "network/packet/packet.h"

#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kPacketLink = fabric_link(gigabits_per_second(100), 1_us);
const PacketOptions kPacketLine{.verb = RdmaVerb::Send, .rates = RateMeaning::Line};
constexpr SimTime kFull = picoseconds(334'240);  // 4,178 B at 100 Gb/s.

class World {
 public:
  explicit World(const PacketOptions& options = kPacketLine)
      : fabric_(one_switch(3, kPacketLink)),
        routing_(fabric_.topology, {}),
        network_(simulator_, routing_, options),
        done_(simulator_) {}
  ConnectionId connect(std::size_t source, std::size_t target) {
    return network_.connect({.source = fabric_.hosts[source], .target = fabric_.hosts[target]});
  }
  void send(ConnectionId connection, Bytes size, std::uint64_t token) {
    network_.send(connection, size, done_, token);
  }
  const std::vector<Woken>& run() {
    simulator_.run();
    return done_.events();
  }
  PacketNetwork& network() { return network_; }
  Simulator& simulator() { return simulator_; }

 private:
  TestFabric fabric_;
  Simulator simulator_;
  Routing routing_;
  PacketNetwork network_;
  Recorder done_;
};

TEST_CASE("a message that answers another one leaves at the instant at which that arrived") {
  // Ping-pong of single packets: each takes two links of 1 us and two times its bytes.
  class Player final : public EventHandler {
   public:
    Player(Simulator& simulator, Network& network, ConnectionId there, ConnectionId back)
        : EventHandler(simulator), simulator_(simulator), network_(network), ids_{there, back} {}
    void on_event(std::uint64_t token) override {
      times.push_back(simulator_.now());
      if (token < 9) {
        network_.send(ids_[(token + 1) % 2], 4096_B, *this, token + 1);
      }
    }
    std::vector<SimTime> times;

   private:
    Simulator& simulator_;
    Network& network_;
    std::array<ConnectionId, 2> ids_;
  };
  World world;
  const ConnectionId there = world.connect(0, 1);
  const ConnectionId back = world.connect(1, 0);
  Player player(world.simulator(), world.network(), there, back);
  world.network().send(there, 4096_B, player, 0);
  world.simulator().run();
  REQUIRE(player.times.size() == 10);
  for (std::size_t i = 0; i < player.times.size(); ++i) {
    REQUIRE(player.times[i] == (kFull * 2 + 2_us) * static_cast<std::int64_t>(i + 1));
  }
}

TEST_CASE("connections that begin at one port take turns, packet by packet") {
  World world;
  world.send(world.connect(0, 1), 4096_B * 3, 0);
  world.send(world.connect(0, 2), 4096_B * 2, 1);
  world.send(world.connect(0, 1), 4096_B * 1, 2);
  // Leave the host in the order a b c a b a.
  const SimTime rest = kFull + 2_us;
  REQUIRE(world.run() ==
          std::vector<Woken>{{kFull * 3 + rest, 2}, {kFull * 5 + rest, 1}, {kFull * 6 + rest, 0}});
}

TEST_CASE("an empty message is a packet of headers, a node reaches itself at once") {
  World world;
  world.send(world.connect(0, 1), 0_B, 0);
  world.send(world.connect(2, 2), 1_GiB, 1);
  const SimTime headers = picoseconds(84 * 80);
  REQUIRE(world.run() == std::vector<Woken>{{SimTime(), 1}, {headers * 2 + 2_us, 0}});
  REQUIRE(world.network().stats().messages == 2);
  REQUIRE(world.network().stats().bytes == 1_GiB);
}

TEST_CASE("with rates of payload a stream of full packets gets the rate of the link") {
  World world({.verb = RdmaVerb::Send});
  world.send(world.connect(0, 1), 4096_B * 1000, 0);
  // 4,096 B at 100 Gb/s: 327,680 ps a packet, once more at the second link.
  const SimTime time = world.run().front().time - 2_us;
  REQUIRE(time >= picoseconds(327'680) * 1001);
  REQUIRE(time <= picoseconds(327'681) * 1001);
}

TEST_CASE("nodes without a path are named") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  add_host(builder, hosts);
  add_host(builder, hosts);
  const Topology topology = std::move(builder).build();
  Simulator simulator;
  Routing routing(topology, {});
  PacketNetwork network(simulator, routing);
  REQUIRE_THROWS_AS(network.connect({.source = hosts[0], .target = hosts[1]}), ConfigError);
}

}  // namespace
}  // namespace trainyard
