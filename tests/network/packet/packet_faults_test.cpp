// SPDX-License-Identifier: Apache-2.0
// Cables that fail in the middle of a run, and what becomes of connections and pauses.
#include "support/catch.h"

#include <algorithm>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/packet_runs.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kFaultsLink = fabric_link(gigabits_per_second(100), 1_us);

PacketOptions line_of(Retransmission retransmission) {
  PacketOptions options = recovering_options(retransmission);
  options.retry.timeout = 100_us;
  return options;
}

TEST_CASE("what is on a cable that fails is lost, and what had arrived is not") {
  const TestFabric fabric = one_switch(2, kFaultsLink);
  // Each packet is on the first link for 334,240 ps and 1 us more: the third one is at its end at
  // 2,002,720 ps.
  for (const std::int64_t late : {0, 1}) {
    Simulator simulator;
    Routing routing(fabric.topology, {});
    PacketNetwork network(simulator, routing, line_of(Retransmission::None));
    network.engine().fail_link(LinkId(1), 2'002'720 - late);  // The link back of the same cable.
    Recorder done(simulator);
    const ConnectionId connection =
        network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]});
    for (std::uint64_t i = 0; i < 5; ++i) {
      network.send(connection, 4096_B, done, i);
    }
    simulator.run();
    REQUIRE(done.events().size() == static_cast<std::size_t>(3 - late));
    REQUIRE(network.stats().packets.link_down >= static_cast<std::uint64_t>(2 + late));
    REQUIRE(network.complaint());
    const auto counters = network.port_counters();
    REQUIRE(counters->front().dropped == static_cast<std::uint64_t>(2 + late));
    REQUIRE(counters->front().link_down == counters->front().dropped);
  }
}

TEST_CASE("a connection whose cable fails gives up after its retries, and the run says so") {
  const TestFabric fabric = one_switch(3, kFaultsLink);
  for (const Retransmission kind : {Retransmission::GoBackN, Retransmission::SelectiveRepeat}) {
    Simulator simulator;
    Routing routing(fabric.topology, {});
    PacketNetwork network(simulator, routing, line_of(kind));
    network.engine().fail_link(LinkId(0), (5_us).picoseconds());
    Recorder done(simulator);
    const ConnectionId broken =
        network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]});
    network.send(broken, 1_MiB, done, 0);
    network.send(network.connect({.source = fabric.hosts[2], .target = fabric.hosts[1]}), 1_MiB,
                 done, 1);
    simulator.run();
    REQUIRE(done.events().size() == 1);
    REQUIRE(done.events().front().token == 1);
    REQUIRE(network.stats().packets.failures == 1);
    REQUIRE(network.connection_counters(broken)->timeouts == 8);
    REQUIRE(network.connection_counters(broken)->retransmitted > 0);
    const std::string complaint = network.complaint().value_or("");
    REQUIRE(complaint.find("host 0 -> host 1") != std::string::npos);
    REQUIRE(complaint.find("1 connections gave up") != std::string::npos);
    REQUIRE(complaint.find("on failed links") != std::string::npos);
    // Messages that are sent later are not complete either, and end nothing.
    network.send(broken, 1_B, done, 2);
    simulator.run();
    REQUIRE(done.events().size() == 1);
    REQUIRE(network.stats().packets.failures == 1);
  }
}

TEST_CASE("a cable that fails does not leave anybody stopped behind it") {
  // Four hosts into one; the last cable fails while the switch stops them, then their own ones.
  const TestFabric fabric = one_switch(5, kFaultsLink);
  for (const bool at_target : {true, false}) {
    PacketOptions options = line_of(Retransmission::GoBackN);
    options.pfc = true;
    options.buffer = 2_MiB;
    Simulator simulator;
    Routing routing(fabric.topology, {});
    PacketNetwork network(simulator, routing, options);
    network.engine().fail_link(LinkId(at_target ? 8 : 0), (700_us).picoseconds());
    Recorder done(simulator);
    for (std::uint32_t i = 0; i < 4; ++i) {
      network.send(network.connect({.source = fabric.hosts[i], .target = fabric.hosts[4]}), 4_MiB,
                   done, i);
    }
    simulator.run();
    REQUIRE(network.stats().packets.pauses > 0);
    REQUIRE(network.stats().packets.failures == (at_target ? 4 : 1));
    REQUIRE(done.events().size() == (at_target ? 0 : 3));
    for (std::uint32_t link = 0; link < 10; ++link) {
      REQUIRE(network.engine().port(LinkId(link))->stops == 0);
      REQUIRE(network.engine().port(LinkId(link))->queue.empty());
    }
    REQUIRE(network.engine().deadlock().empty());
  }
}

TEST_CASE("bit errors are of the links of the fabric, or of one link") {
  const TestFabric fabric = one_switch(2, kFaultsLink);
  for (const bool everywhere : {true, false}) {
    PacketOptions options = line_of(Retransmission::GoBackN);
    options.bit_error_rate = everywhere ? 1e-6 : 0.0;
    Simulator simulator;
    Routing routing(fabric.topology, {});
    PacketNetwork network(simulator, routing, options);
    if (!everywhere) {
      network.engine().set_bit_error_rate(LinkId(3), 1e-6);
    }
    Recorder done(simulator);
    network.send(network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]}), 16_MiB,
                 done, 0);
    simulator.run();
    REQUIRE(done.events().size() == 1);
    REQUIRE(!network.complaint());
    REQUIRE(network.engine().fabric().losses().tally(LinkId(3)).bit_errors > 20);
    REQUIRE((network.engine().fabric().losses().tally(LinkId(0)).bit_errors > 0) == everywhere);
  }
  PacketOptions options = line_of(Retransmission::None);
  options.bit_error_rate = 1.0;
  REQUIRE_THROWS_AS(PacketEngine(fabric.topology, options), ConfigError);
}

}  // namespace
}  // namespace trainyard
