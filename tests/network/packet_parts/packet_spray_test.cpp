// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <map>
#include <set>

#include "network/packet/packet.h"
#include "network/packet_parts/packet_spray.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kTrunk = fabric_link(gigabits_per_second(100), 1_us);
const PacketOptions kPlain{.verb = RdmaVerb::Send, .rates = RateMeaning::Line};
constexpr Bytes kPacket = 4096_B;
constexpr std::int64_t kWire = 4096 + 82;

struct Shift {
  std::vector<Woken> events;
  std::vector<PacketStart> starts;
  std::vector<LinkUse> use;
  NetworkStats stats;
};

// Messages of these sizes from each host of the first leaf to its opposite on the second.
Shift shift(const TestFabric& fabric, RoutingPolicy policy, const std::vector<Bytes>& sizes,
            const PacketOptions& options = kPlain) {
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = policy, .seed = 1});
  PacketNetwork network(simulator, routing, options);
  Shift run;
  network.engine().trace(&run.starts);
  Recorder done(simulator);
  const std::size_t half = fabric.hosts.size() / 2;
  std::uint64_t token = 0;
  for (std::size_t host = 0; host < half; ++host) {
    const ConnectionId connection =
        network.connect({.source = fabric.hosts[host], .target = fabric.hosts[half + host]});
    for (const Bytes size : sizes) {
      network.send(connection, size, done, token++);
    }
  }
  simulator.run();
  REQUIRE(!network.complaint());
  run.events = done.events();
  run.use = network.link_use();
  run.stats = network.stats();
  std::sort(run.starts.begin(), run.starts.end());
  return run;
}

TEST_CASE("packets that are sprayed share all paths, and a permutation runs at full rate") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunk, kTrunk);
  constexpr std::int64_t kPackets = 2000;
  const std::vector<Bytes> sizes{kPacket * kPackets};
  const Bandwidth rate = kTrunk.bandwidth;
  const SimTime alone = transfer_time(Bytes(kWire), rate) * (kPackets + 3) + 4_us;
  const Shift sprayed = shift(fabric, RoutingPolicy::Spray, sizes);
  REQUIRE(sprayed.events.back().time < alone + 20_us);
  REQUIRE(shift(fabric, RoutingPolicy::EcmpHash, sizes).events.back().time > alone * 2 - 100_us);
  // 2 x 8 links of hosts with all, 2 x 8 x 8 trunks with an eighth of it to a packet.
  std::size_t whole = 0;
  for (const LinkUse& link : sprayed.use) {
    if (link.bytes == sizes[0]) {
      ++whole;
    }
  }
  REQUIRE(whole >= 16);
  REQUIRE(sprayed.use.size() == 16 + 16);
  REQUIRE(sprayed.stats.packets.reordered > 0);
}

TEST_CASE("answers of connections whose packets are sprayed share all spines") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunk, kTrunk);
  PacketOptions options = kPlain;
  options.packets_per_ack = 1;
  const Shift run = shift(fabric, RoutingPolicy::Spray, {kPacket * 100}, options);
  // Only answers go up from the leaf of the targets.
  const Topology& topology = fabric.topology;
  const NodeId leaf = topology.link(topology.links_from(fabric.hosts.back())[0]).target;
  std::set<NodeId> spines;
  for (const PacketStart& start : run.starts) {
    const Link& link = topology.link(LinkId(start.link));
    if (link.source == leaf && topology.node(link.target).kind == NodeKind::Switch) {
      spines.insert(link.target);
    }
  }
  REQUIRE(spines.size() == 8);
}

TEST_CASE("a connection alone sends as many packets by each path and keeps their order") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 5}, kTrunk, kTrunk);
  const Shift run = shift(fabric, RoutingPolicy::Spray, {kPacket * 1000});
  REQUIRE(run.use.size() == 2 + 2 * 5);
  for (const LinkUse& link : run.use) {
    REQUIRE((link.bytes == kPacket * 1000 || link.bytes == kPacket * 200));
  }
  REQUIRE(run.stats.packets.reordered == 0);
}

TEST_CASE("with one path a sprayed run is that of ECMP, packet by packet") {
  const TestFabric fabric = one_switch(6, kTrunk);
  const std::vector<Bytes> sizes{kPacket * 30, Bytes(0), Bytes(8)};
  const Shift sprayed = shift(fabric, RoutingPolicy::Spray, sizes);
  const Shift plain = shift(fabric, RoutingPolicy::EcmpHash, sizes);
  REQUIRE(sprayed.starts == plain.starts);
  REQUIRE(sprayed.events == plain.events);
}

// Trunks of different rates make packets overtake each other.
TestFabric uneven_clos(RandomStream& random) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  std::vector<NodeId> spines;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const NodeId spine = add_switch(builder, "spine " + std::to_string(i));
    builder.add_duplex_link(left, spine, random_link(random));
    builder.add_duplex_link(spine, right, random_link(random));
    spines.push_back(spine);
  }
  for (const NodeId leaf : {left, left, right, right}) {
    builder.add_duplex_link(add_host(builder, hosts), leaf, random_link(random));
  }
  return {.topology = std::move(builder).build(), .hosts = hosts, .switches = spines};
}

TEST_CASE("a message is whole when its last packet and all before it have come") {
  std::uint64_t reordered = 0;
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "spray");
    const TestFabric fabric = uneven_clos(random);
    std::vector<Bytes> sizes;
    for (int i = 0; i < 4; ++i) {
      sizes.push_back(Bytes(static_cast<std::int64_t>(random.below(100'000))));
    }
    PacketOptions options = kPlain;
    options.mtu = 1024_B;
    const Shift run = shift(fabric, RoutingPolicy::Spray, sizes, options);
    reordered += run.stats.packets.reordered;

    // When each packet is at its target, by the last link that it took.
    const Topology& topology = fabric.topology;
    std::map<std::pair<std::uint32_t, std::uint32_t>, SimTime> arrivals;
    std::vector<std::uint32_t> counts(2);
    for (const PacketStart& start : run.starts) {
      counts[start.connection] = std::max(counts[start.connection], start.sequence + 1);
    }
    for (const PacketStart& start : run.starts) {
      const Link& link = topology.link(LinkId(start.link));
      if (topology.node(link.target).kind == NodeKind::Gpu) {
        // Which message the packet is of says how large it is.
        std::int64_t number = start.sequence;
        std::int64_t payload = 0;
        for (const Bytes size : sizes) {
          const std::int64_t packets = std::max<std::int64_t>(1, (size.count() + 1023) / 1024);
          if (number < packets) {
            payload = std::min<std::int64_t>(1024, size.count() - 1024 * number);
            break;
          }
          number -= packets;
        }
        const Bytes wire = wire_bytes(options.framing, RdmaOpcode::SendOnly, Bytes(payload));
        arrivals[{start.connection, start.sequence}] =
            SimTime(start.time) + transfer_time(wire, link.spec.bandwidth) + link.spec.latency;
      }
    }
    std::vector<SimTime> expected;
    for (std::uint32_t connection = 0; connection < 2; ++connection) {
      SimTime latest;
      std::uint32_t next = 0;
      for (const Bytes size : sizes) {
        const auto packets =
            static_cast<std::uint32_t>(std::max<std::int64_t>(1, (size.count() + 1023) / 1024));
        for (const std::uint32_t end = next + packets; next < end; ++next) {
          latest = std::max(latest, arrivals.at({connection, next}));
        }
        expected.push_back(latest);
      }
      REQUIRE(next == counts[connection]);
    }
    for (const Woken& event : run.events) {
      REQUIRE(event.time == expected[event.token]);
    }
    options.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
    const Shift again = shift(fabric, RoutingPolicy::Spray, sizes, options);
    REQUIRE(again.starts == run.starts);
    REQUIRE(again.stats.packets.reordered == run.stats.packets.reordered);
  }
  REQUIRE(reordered > 1000);
}

TEST_CASE("the target's memory of what came early grows, and wraps with the numbers") {
  PacketSpray spray(0);
  spray.add_path(7, 1);
  SprayedArrivals arrivals;
  constexpr std::uint32_t kCount = 5000;
  const auto arrive = [&](std::uint32_t i) { return arrivals.arrive(i, i % 1000 == 999); };
  for (std::uint32_t i = 0; i < kCount; ++i) {
    (void)spray.next_path(1, 0);
  }
  std::uint32_t whole = 0;
  for (std::uint32_t i = 1; i < kCount; ++i) {
    whole += arrive(i);
  }
  REQUIRE(whole == 0);
  REQUIRE(arrive(0) == 5);
  REQUIRE(arrivals.expected() == kCount);
  REQUIRE(spray.paths()[0].bytes == kCount / 2);
}

}  // namespace
}  // namespace trainyard
