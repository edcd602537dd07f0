// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/flow/spray.h"

#include <memory>
#include <vector>

#include "network/engines/make_network.h"
#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

// 100 Gb/s: 12,500 bytes take 1 us.
const LinkSpec kSprayLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kSprayMicrosecond{12'500};

class World {
 public:
  World(TestFabric fabric, RoutingPolicy policy)
      : fabric_(std::move(fabric)),
        routing_(fabric_.topology, {.policy = policy, .seed = 1}),
        network_(make_network(Fidelity::Flow, simulator_, routing_)),
        done_(simulator_) {}

  ConnectionId connect(std::size_t source, std::size_t target) {
    return network_->connect({.source = fabric_.hosts[source], .target = fabric_.hosts[target]});
  }
  void send(ConnectionId connection, Bytes size) {
    network_->send(connection, size, done_, next_token_++);
  }
  const std::vector<Woken>& run() {
    simulator_.run();
    return done_.events();
  }
  Network& network() { return *network_; }

 private:
  TestFabric fabric_;
  Simulator simulator_;
  Routing routing_;
  std::unique_ptr<Network> network_;
  Recorder done_;
  std::uint64_t next_token_ = 0;
};

// Each host of the first leaf to its opposite on the second, `size` each. The last arrival.
SimTime shift_time(const ClosShape& shape, RoutingPolicy policy, Bytes size) {
  World world(clos(shape, kSprayLink, kSprayLink), policy);
  const auto hosts = static_cast<std::size_t>(shape.hosts_per_leaf);
  for (std::size_t host = 0; host < hosts; ++host) {
    world.send(world.connect(host, hosts + host), size);
  }
  return world.run().back().time;
}

TEST_CASE("a permutation that collides under ECMP runs at full rate when it is sprayed") {
  const ClosShape shape{.leaves = 2, .hosts_per_leaf = 8, .spines = 8};
  const Bytes size = kSprayMicrosecond * 8192;  // Eight equal parts of whole picoseconds.
  const SimTime alone = transfer_time(size, kSprayLink.bandwidth) + 1_us * 4;
  REQUIRE(shift_time(shape, RoutingPolicy::EcmpHash, size) >= alone + 8192_us);
  REQUIRE(shift_time(shape, RoutingPolicy::Spray, size) == alone);
}

TEST_CASE("each path carries its part") {
  World world(clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 4}, kSprayLink, kSprayLink),
              RoutingPolicy::Spray);
  world.send(world.connect(0, 1), kSprayMicrosecond * 400);
  world.run();
  const std::vector<LinkUse> use = world.network().link_use();
  REQUIRE(use.size() == 2 + 2 * 4);
  int whole = 0;
  for (const LinkUse& link : use) {
    whole += link.bytes == kSprayMicrosecond * 400 ? 1 : 0;
    REQUIRE((link.bytes == kSprayMicrosecond * 400 || link.bytes == kSprayMicrosecond * 100));
  }
  REQUIRE(whole == 2);
  REQUIRE(world.network().stats().messages == 1);
  REQUIRE(world.network().stats().connections == 1);
  REQUIRE(world.network().stats().bytes == kSprayMicrosecond * 400);
}

TEST_CASE("with one path a sprayed run is that of ECMP, event by event") {
  const auto run = [](RoutingPolicy policy) {
    World world(one_switch(4, kSprayLink), policy);
    const ConnectionId a = world.connect(0, 1);
    const ConnectionId b = world.connect(2, 1);
    const ConnectionId self = world.connect(3, 3);
    for (const int size : {3, 0, 5}) {
      world.send(a, kSprayMicrosecond * size);
      world.send(b, kSprayMicrosecond * 7);
      world.send(self, kSprayMicrosecond);
    }
    return world.run();
  };
  REQUIRE(run(RoutingPolicy::Spray) == run(RoutingPolicy::EcmpHash));
}

TEST_CASE("messages of a connection complete in order, empty and short ones too") {
  World world(clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 4}, kSprayLink, kSprayLink),
              RoutingPolicy::Spray);
  const ConnectionId connection = world.connect(0, 1);
  for (const Bytes size :
       {kSprayMicrosecond * 100, Bytes(0), Bytes(8), kSprayMicrosecond, Bytes(0)}) {
    world.send(connection, size);
  }
  const std::vector<Woken> events = world.run();
  REQUIRE(events.size() == 5);
  for (std::uint64_t message = 0; message < 5; ++message) {
    REQUIRE(events[message].token == message);
  }
  REQUIRE(events[0].time >= 104_us);
  // 101 us and 8 bytes of data in all, but for what rounding up costs.
  REQUIRE(events[4].time >= 105_us);
  REQUIRE(events[4].time < 105_us + 10_ns);
}

TEST_CASE("a message of zero bytes takes the latency of the path") {
  World world(clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 4}, kSprayLink, kSprayLink),
              RoutingPolicy::Spray);
  world.send(world.connect(0, 1), Bytes(0));
  REQUIRE(world.run() == std::vector<Woken>{{.time = 4_us, .token = 0}});
}

TEST_CASE("more than 64 paths are used evenly by connections that follow one another") {
  // 8 spines of 16 trunks to each leaf are not needed: 128 spines give 128 paths.
  World world(clos({.leaves = 2, .hosts_per_leaf = 2, .spines = 128}, kSprayLink, kSprayLink),
              RoutingPolicy::Spray);
  world.send(world.connect(0, 2), kSprayMicrosecond * 6400);
  world.send(world.connect(1, 3), kSprayMicrosecond * 6400);
  world.run();
  REQUIRE(world.network().link_use().size() == 4 + 2 * 128);
}

TEST_CASE("two nodes without a path are named") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  add_host(builder, hosts);
  add_host(builder, hosts);
  World world({.topology = std::move(builder).build(), .hosts = hosts}, RoutingPolicy::Spray);
  REQUIRE_THROWS_WITH(world.connect(0, 1),
                      "no path leads from host 0 to host 1: the cluster does not connect them");
}

}  // namespace
}  // namespace trainyard
