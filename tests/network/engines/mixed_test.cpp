// SPDX-License-Identifier: Apache-2.0
// Packets beside flows on cases small enough to work out by hand.
#include "support/catch.h"

#include "network/engines/mixed.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/packet_runs.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

// 100 Gb/s: 12,500 bytes take 1 us. Paths across the switch take 2 us.
const LinkSpec kLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kMillisecond{12'500'000};

// Connections that begin at host 0 run as packets.
MixedOptions packets_from(const TestFabric& fabric, std::size_t host = 0) {
  return {.is_chosen = [node = fabric.hosts[host]](const NewConnection& connection) {
    return connection.spec.source == node;
  }};
}

// Arrivals in microseconds, by message.
std::vector<double> arrivals(const TestFabric& fabric, const Traffic& traffic,
                             const MixedOptions& mixed,
                             const PacketOptions& packet = line_options()) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  MixedNetwork network(simulator, routing, packet, mixed);
  std::vector<double> times(traffic.messages.size());
  for (const Woken& event : play(simulator, network, fabric, traffic)) {
    times[event.token] = event.time.microseconds();
  }
  return times;
}

bool is_near(double value, double expected, double share) {
  return std::abs(value - expected) <= share * expected;
}

TEST_CASE("what runs as flows alone, or as packets alone, takes what its engine says") {
  const TestFabric fabric = one_switch(4, kLink);
  const Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 2, .target = 1}},
                        .messages = {{.connection = 0, .size = kMillisecond},
                                     {.connection = 1, .size = kMillisecond},
                                     {.connection = 1, .size = 1_B}}};
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork packets(simulator, routing, line_options());
  std::vector<double> expected(3);
  for (const Woken& event : play(simulator, packets, fabric, traffic)) {
    expected[event.token] = event.time.microseconds();
  }
  const MixedOptions all{.is_chosen = [](const NewConnection&) { return true; }};
  REQUIRE(arrivals(fabric, traffic, all) == expected);

  const MessagesRun flows = run_traffic(fabric, traffic, Fidelity::Flow);
  const std::vector<double> none = arrivals(fabric, traffic, {});
  for (std::size_t i = 0; i < none.size(); ++i) {
    REQUIRE(none[i] == flows.arrivals[i].microseconds());
  }
}

// The last look at what packets sent is up to 20 us after their end.
TEST_CASE("a run is over when its last message is complete, not when packets are looked at") {
  const TestFabric fabric = one_switch(4, kLink);
  const Traffic traffic{.connections = {{.source = 0, .target = 1}},
                        .messages = {{.connection = 0, .size = 1_KiB}}};
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  MixedNetwork network(simulator, routing, line_options(), packets_from(fabric));
  const SimTime end = play(simulator, network, fabric, traffic).back().time;
  simulator.run();
  REQUIRE(simulator.now() == 20_us);
  REQUIRE(network.quiet_time() == end);
  REQUIRE(end < 5_us);
}

// Both want 1 ms of the link to host 1: each has half of it, and both end after 2 ms.
TEST_CASE("a flow and a message of packets that share a link have half of it each") {
  const TestFabric fabric = one_switch(3, kLink);
  const Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 2, .target = 1}},
                        .messages = {{.connection = 0, .size = kMillisecond},
                                     {.connection = 1, .size = kMillisecond}}};
  const std::vector<double> times = arrivals(fabric, traffic, packets_from(fabric));
  REQUIRE(is_near(times[0], 2'002.0, 0.03));
  REQUIRE(is_near(times[1], 2'002.0, 0.003));
}

// The flow has half of the link until it ends, at twice 0.2 ms; the packets then have all of it:
// 0.2 of 1 ms were sent in the first 0.4 ms.
TEST_CASE("when a flow leaves, packets speed up, and when packets do, flows do") {
  const TestFabric fabric = one_switch(3, kLink);
  Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 2, .target = 1}},
                  .messages = {{.connection = 0, .size = kMillisecond},
                               {.connection = 1, .size = Bytes(2'500'000)}}};
  const std::vector<double> times = arrivals(fabric, traffic, packets_from(fabric));
  REQUIRE(is_near(times[1], 402.0, 0.005));
  REQUIRE(is_near(times[0], 1'202.0, 0.03));

  const std::vector<double> others = arrivals(fabric, traffic, packets_from(fabric, 2));
  REQUIRE(is_near(others[1], 402.0, 0.08));
  REQUIRE(is_near(others[0], 1'202.0, 0.01));
}

// Host 0 has 25 Gb/s: its packets cannot use their half of the link to host 1, and the flow gets
// the other 75. The solver knows the slow link, so this is exact from the start.
TEST_CASE("flows get what packets cannot use behind a slower link") {
  const TestFabric fabric =
      uneven_switch({fabric_link(gigabits_per_second(25), 1_us), kLink, kLink});
  const Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 2, .target = 1}},
                        .messages = {{.connection = 0, .size = kMillisecond},
                                     {.connection = 1, .size = kMillisecond}}};
  const std::vector<double> times = arrivals(fabric, traffic, packets_from(fabric));
  REQUIRE(is_near(times[1], 1'000.0 / 0.75, 0.01));
  REQUIRE(is_near(times[0], 4'002.0, 0.03));
}

// One packet a round trip, of 4 us and a little: a tenth of the link. The solver does not know, but
// sees what was sent. The flow first has half of the link, then all but 1.5 times that tenth.
TEST_CASE("flows get what packets that are held back do not send") {
  const TestFabric fabric = one_switch(3, kLink);
  const Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 2, .target = 1}},
                        .messages = {{.connection = 0, .size = kMillisecond},
                                     {.connection = 1, .size = kMillisecond}}};
  PacketOptions packet = recovering_options(Retransmission::SelectiveRepeat);
  packet.selective.window = 1;
  const std::vector<double> times = arrivals(fabric, traffic, packets_from(fabric), packet);
  REQUIRE(times[0] > 5'000.0);
  REQUIRE(times[1] > 1'050.0);
  REQUIRE(times[1] < 1'200.0);
}

TEST_CASE("a crowd of messages runs as packets, the others as flows") {
  const TestFabric fabric = one_switch(6, kLink);
  Traffic traffic;
  for (std::uint32_t host = 1; host < 5; ++host) {  // Four to one, and one elsewhere.
    traffic.connections.push_back({.source = host, .target = 0});
    traffic.messages.push_back({.connection = host - 1, .size = Bytes(125'000)});
  }
  traffic.connections.push_back({.source = 5, .target = 1});
  traffic.messages.push_back({.connection = 4, .size = Bytes(125'000)});
  for (const std::uint32_t crowd : {2U, 4U, 5U}) {
    Simulator simulator;
    Routing routing(fabric.topology, kTestRouting);
    MixedNetwork network(simulator, routing, line_options(), {.crowd = crowd});
    REQUIRE(play(simulator, network, fabric, traffic).size() == 5);
    REQUIRE(network.mixed_stats().packet_messages == (crowd <= 4 ? 4 : 0));
    REQUIRE(network.mixed_stats().flow_messages == (crowd <= 4 ? 1 : 5));
    REQUIRE(network.stats().bytes == Bytes(5 * 125'000));
    REQUIRE(network.stats().messages == 5);
  }
}

TEST_CASE("messages of one connection keep their order, whatever the crowd") {
  const TestFabric fabric = one_switch(3, kLink);
  Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 2, .target = 1}},
                  .messages = {}};
  for (int i = 0; i < 6; ++i) {
    traffic.messages.push_back({.connection = static_cast<std::uint32_t>(i % 3 == 0 ? 0 : 1),
                                .time = SimTime(1'000'000) * i,
                                .size = Bytes(300'000)});
  }
  const std::vector<double> times = arrivals(fabric, traffic, {.crowd = 2});
  REQUIRE(times[0] < times[3]);
  REQUIRE(times[1] < times[2]);
  REQUIRE(times[2] < times[4]);
  REQUIRE(times[4] < times[5]);
}

TEST_CASE("mixed fidelity refuses what one of the engines does not have") {
  const TestFabric fabric = clos({}, kLink, kLink);
  const auto complaint = [&](const RoutingOptions& policy, const PacketOptions& packet) {
    Simulator simulator;
    Routing routing(fabric.topology, policy);
    try {
      const MixedNetwork network(simulator, routing, packet, {});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE(complaint({.policy = RoutingPolicy::Spray}, line_options()) ==
          "mixed fidelity: expected a fabric on which a connection has one path, such as routing "
          "ecmp, found spray");
  PacketOptions fast = line_options();
  fast.fast_forward = FastForward::Exact;
  REQUIRE(complaint({}, fast) ==
          "mixed fidelity: expected no fast-forward, since flows change the rates of ports, found "
          "both");
  PacketOptions slow = line_options();
  slow.pfc = true;
  slow.slow_hosts.push_back({.node = fabric.hosts[0], .receiver = {}});
  REQUIRE(complaint({}, slow) ==
          "mixed fidelity: expected no slow receivers, since flows would not wait for them, found "
          "some");
  PacketOptions failing = line_options();
  failing.failures.push_back({.link = LinkId(0), .time = 1_us});
  REQUIRE(complaint({}, failing) ==
          "mixed fidelity: expected no cables that fail, since flows would go on, found some");
}

}  // namespace
}  // namespace trainyard
