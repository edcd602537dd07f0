// SPDX-License-Identifier: Apache-2.0
// Switches with a shared buffer and PFC: nothing is lost with the headroom as computed, pauses are
// what they should be, and the short ways of working through a switch give what the long one does.
#include "support/catch.h"

#include "network/packet_parts/packet_switch.h"

#include <algorithm>
#include <array>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kSwitchLink = fabric_link(gigabits_per_second(100), 1_us);

PacketOptions pfc_options() {
  return lossless_options(2_MiB);
}

struct PlayedRun {
  std::vector<PacketStart> starts;
  std::vector<Woken> completions;
  PacketEngine::Counts counts;
  std::uint64_t drops = 0;
  std::uint64_t pauses_sent = 0;
  std::uint64_t pauses_received = 0;
  std::uint64_t marks = 0;
  Picoseconds paused_time = 0;
  bool is_empty = true;  // No switch holds anything at the end.
};

PlayedRun run(const TestFabric& fabric, const Traffic& traffic, const PacketOptions& options) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  PlayedRun result;
  network.engine().trace(&result.starts);
  result.completions = play(simulator, network, fabric, traffic);
  result.counts = network.engine().counts();
  for (std::uint32_t link = 0; link < fabric.topology.link_count(); ++link) {
    if (const Port* port = network.engine().port(LinkId(link))) {
      result.drops += port->counters.drops;
      result.pauses_sent += port->counters.pauses_sent;
      result.pauses_received += port->counters.pauses_received;
      result.marks += port->counters.marks;
      result.paused_time += network.engine().paused_time(*port);
      REQUIRE(port->queue.empty());
      REQUIRE(port->queued_bytes == 0);
    }
  }
  for (const PacketSwitch& node : network.engine().fabric().switches()) {
    REQUIRE(node.stopped == 0);
    REQUIRE(node.to_send == 0);
  }
  for (const SwitchLoad& load : network.engine().fabric().loads()) {
    REQUIRE(load.held == 0);
  }
  std::sort(result.starts.begin(), result.starts.end());
  return result;
}

Traffic incast_switch(std::uint32_t senders, Bytes size) {
  Traffic traffic;
  for (std::uint32_t i = 0; i < senders; ++i) {
    traffic.connections.push_back({.source = i, .target = senders});
    traffic.messages.push_back({.connection = i, .time = SimTime(), .size = size});
  }
  return traffic;
}

SimTime last_of(const PlayedRun& result) {
  SimTime last;
  for (const Woken& event : result.completions) {
    last = std::max(last, event.time);
  }
  return last;
}

TEST_CASE("an incast stops its senders, loses nothing, and keeps the last link busy") {
  constexpr std::int64_t kPackets = 500;
  for (const std::uint32_t senders : {2U, 4U, 8U}) {
    const TestFabric fabric = one_switch(static_cast<int>(senders) + 1, kSwitchLink);
    const PlayedRun result = run(fabric, incast_switch(senders, 4096_B * kPackets), pfc_options());
    REQUIRE(result.drops == 0);
    REQUIRE(result.pauses_sent > 0);
    REQUIRE(result.pauses_sent == result.pauses_received);
    REQUIRE(result.paused_time > 0);
    // First packet there, then the link is never idle. The PFC frames go the other way.
    const SimTime full = picoseconds(334'240);
    REQUIRE(last_of(result) == full * (1 + kPackets * senders) + 2_us);
  }
}

TEST_CASE("a switch that pauses stops senders behind another switch, and they stop their hosts") {
  // Four hosts on one switch, the fifth behind a second one: the trunk is stopped first.
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  for (int i = 0; i < 4; ++i) {
    builder.add_duplex_link(add_host(builder, hosts), left, kSwitchLink);
  }
  const LinkId trunk =
      builder.add_duplex_link(left, right, fabric_link(gigabits_per_second(400), 1_us));
  builder.add_duplex_link(add_host(builder, hosts), right, kSwitchLink);
  const TestFabric fabric{.topology = std::move(builder).build(), .hosts = hosts};
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, pfc_options());
  REQUIRE(play(simulator, network, fabric, incast_switch(4, 4_MiB)).size() == 4);
  const auto& engine = network.engine();
  REQUIRE(engine.port(trunk)->counters.pauses_received > 0);
  REQUIRE(engine.port(LinkId(0))->counters.pauses_received > 0);
  REQUIRE(engine.paused_time(*engine.port(trunk)) > 0);
}

TEST_CASE("without PFC what does not fit is lost") {
  PacketOptions options = pfc_options();
  options.pfc = false;
  options.buffer = 100'000_B;
  const TestFabric fabric = one_switch(5, kSwitchLink);
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  Recorder done(simulator);
  for (std::uint32_t i = 0; i < 4; ++i) {
    network.send(network.connect({.source = fabric.hosts[i], .target = fabric.hosts[4]}),
                 4096_B * 100, done, i);
  }
  simulator.run();
  REQUIRE(network.engine().port(LinkId(9))->counters.drops > 0);
}

TEST_CASE("a buffer that cannot hold the headroom is the user's mistake") {
  PacketOptions options = pfc_options();
  options.buffer = 100'000_B;
  const TestFabric fabric = one_switch(4, kSwitchLink);
  PacketEngine engine(fabric.topology, options);
  REQUIRE_THROWS_AS(engine.add_connection(std::array{LinkId(0), LinkId(3)}), ConfigError);
}

// Links slow and short enough that a small buffer holds the headroom, traffic that fills it.
LinkSpec short_link(RandomStream& random) {
  constexpr std::array<std::int64_t, 4> kRates{25, 100, 100, 200};
  const std::int64_t rate = kRates[random.below(kRates.size())];
  const auto latency = static_cast<std::int64_t>(100'000 + random.below(900'000));
  return fabric_link(gigabits_per_second(rate), SimTime(latency));
}

TestFabric crowded_fabric(RandomStream& random) {
  if (random.below(2) == 0) {
    std::vector<LinkSpec> links(3 + random.below(4));
    for (LinkSpec& link : links) {
      link = short_link(random);
    }
    return uneven_switch(links);
  }
  const LinkSpec host_link = short_link(random);
  return clos({.leaves = 2 + static_cast<int>(random.below(2)),
               .hosts_per_leaf = 2 + static_cast<int>(random.below(2)),
               .spines = 1 + static_cast<int>(random.below(2))},
              host_link, short_link(random));
}

Traffic crowded_traffic(const TestFabric& fabric, RandomStream& random) {
  Traffic traffic;
  const auto target = static_cast<std::uint32_t>(random.below(fabric.hosts.size()));
  for (std::uint32_t source = 0; source < fabric.hosts.size(); ++source) {
    const bool aside = random.below(4) == 0;
    const auto other = static_cast<std::uint32_t>(random.below(fabric.hosts.size()));
    traffic.connections.push_back({.source = source,
                                   .target = aside ? other : target,
                                   .flow_label = static_cast<std::uint32_t>(random.below(4))});
  }
  SimTime time;
  for (std::uint32_t i = 0; i < 2 * fabric.hosts.size(); ++i) {
    time += SimTime(static_cast<std::int64_t>(random.below(5'000'000)));
    traffic.messages.push_back(
        {.connection = static_cast<std::uint32_t>(i % traffic.connections.size()),
         .time = time,
         .size = Bytes(static_cast<std::int64_t>(1 + random.below(1'000'000)))});
  }
  return traffic;
}

PacketOptions crowded_options(RandomStream& random) {
  PacketOptions options = pfc_options();
  options.buffer = Bytes(static_cast<std::int64_t>(1'200'000 + random.below(1'000'000)));
  options.alpha_exponent = static_cast<int>(random.below(5)) - 4;
  options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  if (random.below(2) == 0) {
    options.ecn = EcnPreset::Dcqcn;
    options.control =
        random.below(2) == 0 ? CongestionControl::DcqcnNic : CongestionControl::DcqcnPaper;
    options.packets_per_ack = static_cast<int>(random.below(3)) * 8;
  } else if (random.below(2) == 0) {
    constexpr std::array kControls{"dctcp", "swift", "hpcc", "timely", "dcqcn-simai", "dcqcn-nic"};
    set_control(options, shipped_control(kControls.at(random.below(kControls.size()))));
    options.ecn = EcnPreset::Dcqcn;
  }
  return options;
}

TEST_CASE("with PFC and the headroom as computed nothing is lost, whatever the traffic") {
  std::uint64_t pauses = 0;
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "crowd");
    const TestFabric fabric = crowded_fabric(random);
    const Traffic traffic = crowded_traffic(fabric, random);
    const PlayedRun result = run(fabric, traffic, crowded_options(random));
    REQUIRE(result.drops == 0);
    REQUIRE(result.completions.size() == traffic.messages.size());
    REQUIRE(result.pauses_sent == result.pauses_received);
    pauses += result.pauses_sent;
  }
  REQUIRE(pauses > cases(5'000));
}

TEST_CASE("the length of windows and the way through a switch change no packet") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "ways");
    const TestFabric fabric = crowded_fabric(random);
    const Traffic traffic = crowded_traffic(fabric, random);
    PacketOptions options = crowded_options(random);
    const PlayedRun usual = run(fabric, traffic, options);
    options.longest_window = SimTime(static_cast<std::int64_t>(7'000 + random.below(90'000)));
    const PlayedRun narrow = run(fabric, traffic, options);
    REQUIRE(usual.starts == narrow.starts);
    options.longest_window = SimTime();
    options.always_exact = true;
    const PlayedRun exact = run(fabric, traffic, options);
    REQUIRE(usual.starts == exact.starts);
    for (const PlayedRun* other : {&narrow, &exact}) {
      REQUIRE(usual.marks == other->marks);
      REQUIRE(usual.pauses_sent == other->pauses_sent);
      REQUIRE(usual.paused_time == other->paused_time);
      REQUIRE(usual.counts.cnps == other->counts.cnps);
      REQUIRE(usual.counts.acks == other->counts.acks);
    }
    REQUIRE(usual.counts.exact_windows <= exact.counts.exact_windows);
  }
}

}  // namespace
}  // namespace trainyard
