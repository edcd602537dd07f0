// SPDX-License-Identifier: Apache-2.0
// Credits from hop to hop: what a small buffer costs, what a large one leaves, and that nothing
// ever waits where there is no room. tests/network/packet/packet_window_test.cpp compares them
// packet by packet with an ordinary simulation.
#include "support/catch.h"

#include <algorithm>

#include "hw/packet/rdma_packet.h"
#include "network/packet/packet.h"
#include "network/packet/packet_fabric.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::int64_t kWire = 4096 + 82;

PacketOptions with_credits(Bytes fabric) {
  PacketOptions options{.verb = RdmaVerb::Send, .rates = RateMeaning::Line};
  options.fabric_credits = fabric;
  return options;
}

// One message from each of `sources` to the last host; the time of the last one.
SimTime time_to_last(const TestFabric& fabric, std::size_t sources, std::int64_t packets,
                     const PacketOptions& options, std::int64_t* max_queued = nullptr) {
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, options);
  Recorder done(simulator);
  for (std::size_t i = 0; i < sources; ++i) {
    network.send(network.connect({.source = fabric.hosts[i], .target = fabric.hosts.back()}),
                 4096_B * packets, done, i);
  }
  simulator.run();
  REQUIRE(!network.complaint());
  if (max_queued != nullptr) {
    *max_queued = network.stats().packets.max_queued.count();
  }
  return std::max_element(done.events().begin(), done.events().end(),
                          [](const Woken& a, const Woken& b) { return a.time < b.time; })
      ->time;
}

TEST_CASE("with room for k packets one flow sends k packets in the time of a round") {
  const Bandwidth rate = gigabits_per_second(100);
  const LinkSpec link = fabric_link(rate, 1_us);
  const TestFabric fabric = one_switch(2, link);
  const SimTime packet = transfer_time(Bytes(kWire), rate);
  constexpr std::int64_t kPackets = 1000;
  for (const std::int64_t room : {1, 2, 3, 5}) {
    // A packet's place is free again when it has crossed the link, has been sent on, and its sender
    // knows.
    const SimTime round = packet * 2 + link.latency * 2;
    REQUIRE(packet * room < round);
    const SimTime last = (round * ((kPackets - 1) / room)) + packet * ((kPackets - 1) % room);
    REQUIRE(time_to_last(fabric, 1, kPackets, with_credits(Bytes(kWire * room))) ==
            last + packet * 2 + link.latency * 2);
  }
}

TEST_CASE("room for a round trip costs nothing") {
  const Bandwidth rate = gigabits_per_second(400);
  const LinkSpec link = fabric_link(rate, 500_ns);
  const TestFabric fabric = switch_row(link, {link, link});
  // The packet for which room is kept beside those of the loop.
  const Bytes room(64 * credit_buffer(rate, link.latency, SimTime(), Bytes(kWire)) + kWire);
  const SimTime free = time_to_last(fabric, 1, 2000, with_credits(0_B));
  REQUIRE(time_to_last(fabric, 1, 2000, with_credits(room)) == free);
  REQUIRE(time_to_last(fabric, 1, 2000, with_credits(Bytes(room.count() / 2))) > free);
}

TEST_CASE("an incast fills no more than the buffers, and keeps the last link busy") {
  const Bandwidth rate = gigabits_per_second(100);
  const LinkSpec link = fabric_link(rate, 600_ns);
  constexpr std::size_t kSenders = 12;
  const TestFabric fabric = one_switch(kSenders + 1, link);
  const Bytes room(kCreditBlockBytes * 2048);
  std::int64_t max_queued = 0;
  const SimTime last = time_to_last(fabric, kSenders, 500, with_credits(room), &max_queued);
  const SimTime packet = transfer_time(Bytes(kWire), rate);
  REQUIRE(last == packet * (kSenders * 500 + 1) + link.latency * 2);
  REQUIRE(max_queued <= room.count() * static_cast<std::int64_t>(kSenders));
  REQUIRE(max_queued > room.count() * static_cast<std::int64_t>(kSenders) / 2);
}

TEST_CASE("the time without credits is counted") {
  const LinkSpec link = fabric_link(gigabits_per_second(100), 1_us);
  const TestFabric fabric = one_switch(3, link);
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, with_credits(20'000_B));
  Recorder done(simulator);
  for (std::size_t i = 0; i < 2; ++i) {
    network.send(network.connect({.source = fabric.hosts[i], .target = fabric.hosts[2]}),
                 4096_B * 1000, done, i);
  }
  simulator.run();
  const auto starved = [&](std::size_t host) {
    const PacketEngine& engine = network.engine();
    const LinkId up = fabric.topology.links_from(fabric.hosts[host])[0];
    return SimTime(engine.starved_time(*engine.port(up)));
  };
  // Each sender has half of the last link: at least half of the time its credits are used up.
  REQUIRE(starved(0) * 5 > simulator.now() * 2);
  REQUIRE(starved(0) < simulator.now());
  REQUIRE(starved(1) * 5 > simulator.now() * 2);
}

TEST_CASE("windows of other lengths change nothing with credits") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "credits");
    const TestFabric fabric = random_fabric(random);
    const auto hosts = fabric.hosts.size();
    PacketOptions options =
        with_credits(Bytes(5000 + static_cast<std::int64_t>(random.below(60'000))));
    const SimTime last = time_to_last(fabric, hosts - 1, 60, options);
    options.longest_window = SimTime(static_cast<std::int64_t>(20'000 + random.below(400'000)));
    REQUIRE(time_to_last(fabric, hosts - 1, 60, options) == last);
  }
}

TEST_CASE("credits that hold no packet, or beside PFC, are refused") {
  const TestFabric fabric = one_switch(2, fabric_link(gigabits_per_second(100), 1_us));
  REQUIRE_THROWS_WITH(time_to_last(fabric, 1, 1, with_credits(4000_B)),
                      "packet engine: expected credits for at least one packet of 4178 B, found "
                      "4000 B");
  PacketOptions options = with_credits(100'000_B);
  options.pfc = true;
  REQUIRE_THROWS_WITH(time_to_last(fabric, 1, 1, options),
                      "packet engine: expected PFC or credits between switches, found both");
}

}  // namespace
}  // namespace trainyard
