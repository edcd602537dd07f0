// SPDX-License-Identifier: Apache-2.0
// TCP in the packet engine: its bytes, ACKs that wait among data, ports that lose the tail.
#include "support/catch.h"

#include <algorithm>
#include <utility>

#include "network/packet/packet.h"
#include "support/controls.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;

PacketOptions tcp_options() {
  PacketOptions options{.mtu = tcp_payload(Bytes(1500)), .framing = RdmaLink::Tcp};
  options.retransmission = Retransmission::Tcp;
  options.port_queue = Bytes(131'072);
  return options;
}

PacketOptions reno() {
  PacketOptions options = tcp_options();
  options.control = CongestionControl::Profile;
  options.profile = shipped_control("reno");
  return options;
}

// The line is 1538/1448 of it: 30.4 Mb/s, on which a full packet takes 404.48 us.
const LinkSpec kTcpLink = fabric_link(Bandwidth(28'640'000), 10_us);

Traffic flows_to_the_first(std::uint32_t senders, Bytes size) {
  Traffic traffic;
  for (std::uint32_t i = 0; i < senders; ++i) {
    traffic.connections.push_back({.source = i + 1, .target = 0});
    traffic.messages.push_back({.connection = i, .time = SimTime(), .size = size});
  }
  return traffic;
}

std::vector<SimTime> starts_on(const TracedRun& run, const TestFabric& fabric, NodeId from,
                               NodeId to) {
  std::vector<SimTime> times;
  for (const PacketStart& start : run.starts) {
    const Link& link = fabric.topology.link(LinkId(start.link));
    if (link.source == from && link.target == to) {
      times.emplace_back(start.time);
    }
  }
  return times;
}

TEST_CASE("a flow of TCP gets the rate that is stated, after what one packet takes to the end") {
  const TestFabric fabric = one_switch(2, kTcpLink);
  const TracedRun run = run_traced(fabric, flows_to_the_first(1, Bytes(1448 * 40)), tcp_options());
  const SimTime packet = transfer_time(Bytes(1448), kTcpLink.bandwidth);
  const double expected = (packet * 41 + 20_us).microseconds();
  REQUIRE(std::abs(run.arrivals[0]->microseconds() - expected) < 0.1);
  REQUIRE(run.stats.drops == 0);
  REQUIRE(run.stats.retransmitted == 0);
}

// The k-th packet leaves its host after k times, and the switch, whose bucket fills meanwhile, lets
// all pass as they come. After a pause two packets need no time at either.
TEST_CASE("a bucket of a link fills at its rate, and lets pass at once what is in it") {
  const TestFabric fabric = one_switch(2, kTcpLink);
  PacketOptions options = tcp_options();
  options.burst = Bytes(2 * 1538);
  Traffic traffic = flows_to_the_first(1, Bytes(1448 * 40));
  traffic.messages.push_back({.connection = 0, .time = 1000_ms, .size = Bytes(1448 * 2)});
  const TracedRun run = run_traced(fabric, traffic, options);
  const SimTime packet = transfer_time(Bytes(1448), kTcpLink.bandwidth);
  const double expected = (packet * 40 + 20_us).microseconds();
  REQUIRE(std::abs(run.arrivals[0]->microseconds() - expected) < 0.1);
  REQUIRE(std::abs(run.arrivals[1]->microseconds() - 1'000'020) < 0.1);
  options.threads = 2;
  REQUIRE(run_traced(fabric, traffic, options).arrivals == run.arrivals);
  options.burst = Bytes(1537);
  REQUIRE_THROWS_AS(check_options(options), ConfigError);
}

TEST_CASE("a lone packet of TCP is answered after the delay of ACKs, two at once") {
  const TestFabric fabric = one_switch(2, kTcpLink);
  PacketOptions options = tcp_options();
  options.tcp.quick_acks = 0;
  const auto first_ack = [&](std::int64_t packets) {
    const TracedRun run = run_traced(fabric, flows_to_the_first(1, Bytes(1448 * packets)), options);
    return starts_on(run, fabric, fabric.hosts[0], fabric.switches[0]).at(0) - *run.arrivals[0];
  };
  REQUIRE(first_ack(1) == 40_ms);
  REQUIRE(first_ack(2) == SimTime());
}

TEST_CASE("a run is over when its last message has come, not when that is answered") {
  const TestFabric fabric = one_switch(2, kTcpLink);
  PacketOptions late = tcp_options();
  late.tcp.quick_acks = 0;
  for (const auto& [options, answered] :
       {std::pair{late, 40_ms}, std::pair{roce_options(), SimTime()}}) {
    Simulator simulator;
    Routing routing(fabric.topology, kTestRouting);
    PacketNetwork network(simulator, routing, options);
    const auto ends = play(simulator, network, fabric, flows_to_the_first(1, Bytes(1448)));
    REQUIRE(simulator.now() > ends.front().time + answered);
    REQUIRE(network.quiet_time() == ends.front().time);
  }
}

TEST_CASE("ports of switches that are full lose what comes, and TCP sends it again") {
  const TestFabric fabric = one_switch(5, kTcpLink);
  PacketOptions options = tcp_options();
  options.port_queue = Bytes(30'000);
  const TracedRun run = run_traced(fabric, flows_to_the_first(4, Bytes(200'000)), options);
  REQUIRE(run.is_whole());
  REQUIRE(run.stats.drops > 0);
  REQUIRE(run.stats.retransmitted > 0);
  REQUIRE(run.stats.failures == 0);
  REQUIRE(run.stats.max_queued <= Bytes(30'000));
  REQUIRE(run.stats.max_queued > Bytes(28'000));
}

// An ACK that is lost has stated what came out of order: what is under way must not count it.
TEST_CASE("TCP delivers everything whatever share of packets and ACKs is lost") {
  const TestFabric fabric = one_switch(5, kTcpLink);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed=" << seed);
    PacketOptions options = reno();
    options.loss = 0.1;
    options.seed = seed;
    const TracedRun run = run_traced(fabric, flows_to_the_first(4, Bytes(100'000)), options);
    REQUIRE(run.is_whole());
    REQUIRE(run.stats.failures == 0);
  }
}

TEST_CASE("ACKs of TCP wait behind the data that go their way") {
  const TestFabric fabric = one_switch(4, kTcpLink);
  PacketOptions options = tcp_options();
  options.tcp.receive_window = Bytes(1448 * 8);
  Traffic traffic{.connections = {{.source = 0, .target = 1}},
                  .messages = {{.connection = 0, .time = SimTime(), .size = Bytes(1448 * 60)}}};
  const SimTime alone = *run_traced(fabric, traffic, options).arrivals[0];
  for (const std::uint32_t source : {2U, 3U}) {
    const auto id = static_cast<std::uint32_t>(traffic.connections.size());
    traffic.connections.push_back({.source = source, .target = 0});
    traffic.messages.push_back({.connection = id, .time = SimTime(), .size = Bytes(1448 * 100)});
  }
  // Up to sixteen packets of the others, 6.5 ms, wait in the queue that ACKs have to pass, while a
  // window of eight takes 3.2 ms.
  const SimTime beside = *run_traced(fabric, traffic, options).arrivals[0];
  REQUIRE(beside * 2 > alone * 3);
}

// The first ten packets find no round trip that would bound them, and nothing is behind the first.
TEST_CASE("sockets of TCP hold a millisecond of their pace in the queue of their host") {
  const TestFabric fabric = one_switch(2, kTcpLink);
  const TracedRun run = run_traced(fabric, flows_to_the_first(1, Bytes(1448 * 400)), reno());
  REQUIRE(run.is_whole());
  REQUIRE(run.stats.drops == 0);
  REQUIRE(run.stats.max_queued >= Bytes(9 * 1518));
  REQUIRE(run.stats.max_queued <= Bytes(20 * 1518));
  const SimTime packet = transfer_time(Bytes(1448), kTcpLink.bandwidth);
  const double expected = (packet * 401 + 20_us).microseconds();
  REQUIRE(std::abs(run.arrivals[0]->microseconds() - expected) < 0.1);
}

TEST_CASE("TCP has the same packets with any threads and windows") {
  const TestFabric fabric = one_switch(5, kTcpLink);
  PacketOptions options = GENERATE(tcp_options(), reno());
  options.port_queue = Bytes(20'000);
  const Traffic traffic = flows_to_the_first(4, Bytes(100'000));
  const TracedRun run = run_traced(fabric, traffic, options);
  options.threads = 3;
  options.min_shared = 0;
  const TracedRun shared = run_traced(fabric, traffic, options);
  options.threads = 1;
  options.longest_window = 5_us;
  const TracedRun shorter = run_traced(fabric, traffic, options);
  REQUIRE(run.starts == shared.starts);
  REQUIRE(run.arrivals == shared.arrivals);
  REQUIRE(run.starts == shorter.starts);
  REQUIRE(run.arrivals == shorter.arrivals);
}

}  // namespace
}  // namespace trainyard
