// SPDX-License-Identifier: Apache-2.0
// Replays over engines on small fabrics, by hand.
#include "support/catch.h"

#include "nccl/timing/network_replay.h"

#include <vector>

#include "nccl/timing/programs.h"
#include "support/fabrics.h"

namespace trainyard::nccl {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): units only.

// 12,500 bytes take 1 us, across the switch 2 us.
constexpr Bandwidth kRate = gigabits_per_second(100);
constexpr Bytes kMicrosecond{12'500};
const LinkSpec kCable = fabric_link(kRate, 1_us);
constexpr SimTime kWay = 2_us;

// A stream of `count` units from host to host, each its own message, the pair's hosts taking 100 ns
// for each. Port `from` is the sender's, port `to` the receiver's.
void add_stream(ReplayNetwork& network, std::vector<ReplayLane>& lanes, const TestFabric& fabric,
                std::uint32_t from, std::uint32_t to, std::uint64_t count) {
  const auto index = static_cast<std::uint32_t>(network.connections.size());
  network.connections.push_back(
      {.ports = {from, to},
       .latency = 3_us,
       .credit_latency = kWay,
       .slots = 8,
       .proxied = true,
       .sending_host = from,
       .receiving_host = to,
       .host_cost = 100_ns,
       .queue_pairs = {{.source = fabric.hosts[from], .target = fabric.hosts[to]}},
       .receiving_ports = 1,
       .path_latency = kWay});
  UnitRule rule;
  rule.protocol = Protocol::Simple;
  rule.quantum = 1_B;
  rule.unit_cost = 200_ns;
  const ChunkLoops loops{.full = count, .chunk = kMicrosecond, .rest = {}};
  const auto add = [&](std::uint32_t receive, std::uint32_t send) {
    lanes.push_back(
        {.rate = gigabits_per_second(1'000),
         .program = loop_program(1, loops, rule, {receive, kNone, kNone}, {send, kNone, kNone})});
  };
  add(kNone, index);
  add(index, kNone);
}

struct Streams {
  explicit Streams(TestFabric fabric_in, Bandwidth ports = kRate)
      : fabric(std::move(fabric_in)), routing(fabric.topology, {}) {
    network.ports.assign(fabric.hosts.size(), ports);
    network.hosts = static_cast<std::uint32_t>(fabric.hosts.size());
  }
  void add(std::uint32_t from, std::uint32_t to, std::uint64_t count = 20) {
    add_stream(network, lanes, fabric, from, to, count);
  }
  // On ports alone the way is part of the latency.
  [[nodiscard]] SimTime on_ports() const {
    ReplayNetwork alone = network;
    for (ReplayConnection& connection : alone.connections) {
      connection.latency += connection.path_latency;
    }
    return replay(alone, lanes, 1'000);
  }
  [[nodiscard]] SimTime over(Fidelity fidelity) {
    outcome = {};
    return replay_over({.fidelity = fidelity}, routing, network, lanes, 1'000, outcome);
  }

  TestFabric fabric;
  Routing routing;
  ReplayNetwork network;
  std::vector<ReplayLane> lanes;
  EngineOutcome outcome;
};

TEST_CASE("alone, an engine adds nothing to ports of its rate", "[nccl][engine]") {
  Streams streams(one_switch(2, kCable));
  streams.add(0, 1);
  REQUIRE(streams.over(Fidelity::Flow) == streams.on_ports());
  REQUIRE(streams.over(Fidelity::Analytical) == streams.on_ports());
  REQUIRE(streams.outcome.network.messages == 20);
  REQUIRE(streams.outcome.network.bytes == kMicrosecond * 20);
  // Of packets one is stored on the way, and the last of each message is small.
  const SimTime packets = streams.over(Fidelity::Packet);
  REQUIRE(packets > streams.on_ports());
  REQUIRE(packets < streams.on_ports() + 2_us);
}

TEST_CASE("ports that are slower than the engine's links are what counts", "[nccl][engine]") {
  Streams streams(one_switch(2, kCable), kRate.scaled(0.5));
  streams.add(0, 1);
  REQUIRE(streams.over(Fidelity::Flow) == streams.on_ports());
}

TEST_CASE("streams that share a trunk have it together, unlike on ports", "[nccl][engine]") {
  Streams streams(
      clos({.leaves = 2, .hosts_per_leaf = 2, .spines = 1}, kCable, fabric_link(kRate, SimTime())));
  streams.add(0, 2);
  const SimTime alone = streams.over(Fidelity::Flow);
  REQUIRE(alone == streams.on_ports());
  streams.add(1, 3);
  REQUIRE(streams.on_ports() == alone);
  const SimTime both = streams.over(Fidelity::Flow);
  // 40 messages through the trunk, and the way of the first and last.
  REQUIRE(both > 40_us);
  REQUIRE(both < 40_us + alone - 20_us);
  REQUIRE(streams.over(Fidelity::Analytical) >= 40_us);
  const SimTime packets = streams.over(Fidelity::Packet);
  REQUIRE(packets / both == Approx(1.0).margin(0.1));
}

// Two NICs at either end, of which the ports have the sum, with a queue pair each.
struct TwoPairs : Streams {
  explicit TwoPairs(std::size_t parts) : Streams(one_switch(4, kCable), gigabits_per_second(200)) {
    add(0, 1);
    ReplayConnection& connection = network.connections[0];
    connection.queue_pairs.push_back({.source = fabric.hosts[2], .target = fabric.hosts[3]});
    connection.parts = parts;
  }
};

TEST_CASE("several queue pairs carry a message in parts", "[nccl][engine]") {
  TwoPairs streams(2);
  // The first part is 49 lines of 128 bytes, 22 bytes more than a half.
  REQUIRE(streams.over(Fidelity::Flow) / streams.on_ports() == Approx(1.0).margin(0.004));
  REQUIRE(streams.outcome.network.messages == 40);
  REQUIRE(streams.outcome.network.bytes == kMicrosecond * 20);
}

TEST_CASE("queue pairs carry whole messages in turn, which the receiver takes in order",
          "[nccl][engine]") {
  TwoPairs streams(1);
  const SimTime alone = streams.over(Fidelity::Flow);
  // A message has half the rate, and the other pair the next one meanwhile.
  REQUIRE(streams.outcome.network.messages == 20);
  REQUIRE(alone / streams.on_ports() == Approx(1.0).margin(0.1));
  // Where the second pair shares its way with ten others, its messages hold up those of the first.
  for (int other = 0; other < 10; ++other) {
    streams.add(2, 3);
  }
  REQUIRE(streams.over(Fidelity::Flow) > alone + 50_us);
}

TEST_CASE("messages above a threshold are told by one of no bytes", "[nccl][engine]") {
  TwoPairs streams(2);
  const SimTime alone = streams.over(Fidelity::Packet);
  streams.network.connections[0].told_above = kMicrosecond - 1_B;
  REQUIRE(streams.over(Fidelity::Packet) > alone);
  REQUIRE(streams.outcome.network.messages == 80);
  REQUIRE(streams.outcome.network.bytes == kMicrosecond * 20);
  streams.network.connections[0].told_above = kMicrosecond;
  REQUIRE(streams.over(Fidelity::Packet) == alone);
}

TEST_CASE("flags of a protocol are on the wire as well", "[nccl][engine]") {
  // LL: the ports have half of the rate, in data, and a message twice its bytes.
  Streams streams(one_switch(2, kCable), kRate.scaled(0.5));
  streams.add(0, 1);
  streams.network.connections[0].wire_bytes = 16;
  streams.network.connections[0].data_bytes = 8;
  REQUIRE(streams.over(Fidelity::Flow) == streams.on_ports());
  REQUIRE(streams.outcome.network.bytes == kMicrosecond * 40);
}

TEST_CASE("the same replay over an engine has the same fingerprint", "[nccl][engine]") {
  for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Analytical, Fidelity::Packet}) {
    Streams streams(one_switch(3, kCable));
    streams.add(0, 2);
    streams.add(1, 2);
    const SimTime time = streams.over(fidelity);
    const std::uint64_t fingerprint = streams.outcome.fingerprint;
    REQUIRE(streams.over(fidelity) == time);
    REQUIRE(streams.outcome.fingerprint == fingerprint);
    streams.add(2, 1, 1);
    (void)streams.over(fidelity);
    REQUIRE(streams.outcome.fingerprint != fingerprint);
  }
}

}  // namespace
}  // namespace trainyard::nccl
