// SPDX-License-Identifier: Apache-2.0
// What is the analytical engine's own: messages that do not see each other, and the link bound.
#include "support/catch.h"

#include "network/flow/analytical.h"

#include "support/fabrics.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

// 100 Gb/s: 12,500 bytes take 1 us. Paths across the switch take 2 us.
const LinkSpec kLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kMicrosecond{12'500};

TEST_CASE("messages of different connections complete as if alone") {
  const TestFabric fabric = one_switch(3, kLink);
  Simulator simulator;
  Routing routing(fabric.topology, {});
  AnalyticalNetwork network(simulator, routing);
  Recorder done(simulator);
  network.send(network.connect({.source = fabric.hosts[0], .target = fabric.hosts[2]}),
               kMicrosecond * 3, done, 0);
  network.send(network.connect({.source = fabric.hosts[1], .target = fabric.hosts[2]}),
               kMicrosecond * 4, done, 1);
  REQUIRE(network.quiet_time() == 9_us);  // Both into host 2: 7 us and the latency.
  simulator.run();
  REQUIRE(done.events() == std::vector<Woken>{{5_us, 0}, {6_us, 1}});
}

TEST_CASE("the link bound starts at the first message and adds the least latency") {
  // Hosts 0 and 1 are one switch and two switches away from host 2.
  const TestFabric fabric = switch_row(kLink, {kLink, kLink});
  Simulator simulator;
  Routing routing(fabric.topology, {});
  AnalyticalNetwork network(simulator, routing);
  Recorder done(simulator);
  REQUIRE(network.quiet_time() == SimTime());
  const ConnectionId far = network.connect({.source = fabric.hosts[0], .target = fabric.hosts[2]});
  const ConnectionId near = network.connect({.source = fabric.hosts[1], .target = fabric.hosts[2]});
  simulator.schedule(10_us, done, 9);
  simulator.run();
  network.send(near, 0_B, done, 0);  // Loads no link.
  simulator.run();
  REQUIRE(simulator.now() == 13_us);
  network.send(far, kMicrosecond * 2, done, 1);
  REQUIRE(network.quiet_time() == 13_us + 2_us + 4_us);
  network.send(near, kMicrosecond * 8, done, 2);
  // The shared link: from 13 us on, 10 us of load, and 3 us of latency.
  REQUIRE(network.quiet_time() == 26_us);
  simulator.run();
  REQUIRE(simulator.now() == 24_us);
  REQUIRE(network.quiet_time() == 26_us);
  network.send(near, kMicrosecond * 8, done, 3);
  // From 13 us on, 18 us of load on the shared link; from 13 us on, 16 us on that of host 1.
  REQUIRE(network.quiet_time() == 34_us);
  simulator.run();
  REQUIRE(simulator.now() == 35_us);  // By now the messages themselves take longer.
  REQUIRE(network.quiet_time() == 35_us);
}

}  // namespace
}  // namespace trainyard
