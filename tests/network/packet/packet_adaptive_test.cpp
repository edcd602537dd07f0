// SPDX-License-Identifier: Apache-2.0
// Switches that choose ports: packet by packet as an ordinary simulation says, and what choices for
// packets and for flowlets are good for.
#include "support/catch.h"

#include "network/packet/packet_adaptive.h"

#include <algorithm>
#include <set>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/naive_lanes.h"
#include "support/packet_runs.h"
#include "support/recorder.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;
using Unit = AdaptiveOptions::Unit;

const LinkSpec kTrunk = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kPacket = 4096_B;

// Racks of hosts below two or three switches each, with spines above: up to nine ways between two
// racks. Trunks differ in latency.
TestFabric racks_of(RandomStream& random, const LinkSpec& host_link, Bandwidth rate) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> spines;
  const auto trunk = [&] {
    return fabric_link(rate, SimTime(static_cast<std::int64_t>(random.below(2'000'000))));
  };
  const std::uint64_t middles = 1 + random.below(3);
  const std::uint64_t above = 1 + random.below(3);
  for (std::uint64_t spine = 0; spine < middles * above; ++spine) {
    spines.push_back(add_switch(builder, "spine " + std::to_string(spine)));
  }
  for (int rack = 0; rack < 2; ++rack) {
    const NodeId leaf = add_switch(builder, "leaf " + std::to_string(rack));
    for (std::uint64_t host = 0; host < 3; ++host) {
      builder.add_duplex_link(add_host(builder, hosts), leaf, host_link);
    }
    for (std::uint64_t number = 0; number < middles; ++number) {
      const NodeId middle = add_switch(builder, "middle");
      builder.add_duplex_link(leaf, middle, trunk());
      for (std::uint64_t spine = 0; spine < above; ++spine) {
        builder.add_duplex_link(middle, spines[number * above + spine], trunk());
      }
    }
  }
  return {.topology = std::move(builder).build(), .hosts = hosts, .switches = spines};
}

// All shortest ways of each connection.
NaiveWays ways_of(const TestFabric& fabric, const Traffic& traffic) {
  Routing routing(fabric.topology, {.policy = RoutingPolicy::Spray, .seed = 1});
  NaiveWays ways;
  for (const TestConnection& connection : traffic.connections) {
    std::set<std::vector<LinkId>> all;
    std::vector<LinkId> path;
    for (std::uint32_t number = 0; number < 64; ++number) {
      REQUIRE(routing.route(fabric.hosts[connection.source], fabric.hosts[connection.target],
                            connection.flow_label, path, number));
      all.insert(path);
    }
    ways.emplace_back(all.begin(), all.end());
  }
  return ways;
}

TracedRun run_ways(const TestFabric& fabric, const Traffic& traffic, const NaiveWays& ways,
                   const std::vector<std::uint8_t>& lanes, const PacketOptions& options) {
  PacketEngine engine(fabric.topology, options);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto twin =
        std::find(ways.begin(), ways.begin() + static_cast<std::ptrdiff_t>(i), ways[i]);
    if (twin == ways.begin() + static_cast<std::ptrdiff_t>(i)) {
      static_cast<void>(engine.add_adaptive(ways[i], lanes[i]));
    } else {
      static_cast<void>(engine.add_twin(static_cast<std::uint32_t>(twin - ways.begin()), lanes[i]));
    }
  }
  TracedRun run = run_on(engine, traffic);
  Bytes sent;
  for (const auto& [link, bytes] : engine.payload_by_link()) {
    const Link& record = fabric.topology.link(link);
    sent += fabric.topology.node(record.source).kind == NodeKind::Gpu ? bytes : Bytes(0);
  }
  REQUIRE((options.failures.empty() ? sent.count() == engine.counts().bytes
                                    : sent.count() <= engine.counts().bytes));
  return run;
}

PacketOptions random_options(RandomStream& random) {
  PacketOptions options = line_options();
  options.mtu = Bytes(std::int64_t{1024} << random.below(3));
  options.adaptive.emplace();
  options.adaptive->unit = random.below(2) == 0 ? Unit::Packet : Unit::Flowlet;
  options.adaptive->grades.step = Bytes(static_cast<std::int64_t>(1 + random.below(20'000)));
  options.adaptive->grades.slack = static_cast<std::int64_t>(random.below(3));
  options.adaptive->gap = SimTime(static_cast<std::int64_t>(random.below(5'000'000)));
  options.adaptive->entries = std::uint32_t{1} << random.below(8);
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  options.seed = random.next();
  return options;
}

// A switch that is too small for the headroom of its ports is refused.
void make_room(const TestFabric& fabric, PacketOptions& options) {
  const Traffic across{.connections = {{.source = 0, .target = 3}}, .messages = {}};
  const NaiveWays ways = ways_of(fabric, across);  // Over all switches.
  while (true) {
    try {
      PacketEngine engine(fabric.topology, options);
      static_cast<void>(engine.add_adaptive(ways.front()));
      return;
    } catch (const ConfigError&) {
      options.buffer = options.buffer * 2;
    }
  }
}

TEST_CASE("where switches choose every packet begins when an ordinary simulation says",
          "[adaptive]") {
  std::uint64_t pauses = 0;
  std::uint64_t drops = 0;
  std::uint64_t reordered = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < cases(40); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "adaptive");
    const Bandwidth rate = random_link(random).bandwidth;
    const TestFabric fabric = racks_of(random, random_link(random), rate);
    const Traffic traffic = traffic_between_hosts(fabric, random, 3);
    PacketOptions options = random_options(random);
    options.lanes.emplace();
    options.lanes->lossless = static_cast<std::uint8_t>(random.below(3) == 0 ? 0xFF : 0xF0);
    std::vector<std::uint8_t> lanes;
    for (std::size_t i = 0; i < traffic.connections.size(); ++i) {
      lanes.push_back(static_cast<std::uint8_t>(2 + random.below(4)));
    }
    options.pfc = random.below(3) > 0;
    if (options.pfc || random.below(2) == 0) {
      options.buffer = Bytes(static_cast<std::int64_t>(100'000 + random.below(200'000)));
    }
    if (!options.pfc && random.below(2) == 0) {
      const auto link = static_cast<std::uint32_t>(random.below(fabric.topology.link_count()));
      options.failures.push_back(
          {.link = LinkId(link),
           .time = SimTime(static_cast<std::int64_t>(random.below(100'000'000)))});
    }
    const NaiveWays ways = ways_of(fabric, traffic);
    make_room(fabric, options);
    const NaiveLanesRun naive =
        run_naive_ways(fabric, traffic, ways, lanes, options, *options.lanes);
    const TracedRun run = run_ways(fabric, traffic, ways, lanes, options);
    REQUIRE(run.starts == naive.starts);
    REQUIRE(run.arrivals == naive.arrivals);
    REQUIRE(run.stats.pauses == naive.pauses);
    REQUIRE(run.stats.drops - run.stats.link_down == naive.drops);
    pauses += naive.pauses;
    drops += naive.drops;
    reordered += run.stats.reordered;
    lost += run.stats.link_down;
    options.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
    options.always_exact = random.below(2) == 0;
    options.threads = 1 + static_cast<int>(random.below(4));
    options.min_shared = 1;
    REQUIRE(run_ways(fabric, traffic, ways, lanes, options).starts == run.starts);
  }
  if (!kIsSanitized) {  // Which tries too few cases to see all of it.
    REQUIRE(pauses > 0);
    REQUIRE(drops > 0);
    REQUIRE(reordered > 0);
    REQUIRE(lost > 0);
  }
}

TEST_CASE("switches without lanes and bounds choose as those with one lane in use", "[adaptive]") {
  for (std::uint64_t seed = 0; seed < cases(15); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "adaptive without lanes");
    const TestFabric fabric = racks_of(random, random_link(random), random_link(random).bandwidth);
    const Traffic traffic = traffic_between_hosts(fabric, random, 3);
    const PacketOptions options = random_options(random);
    const NaiveWays ways = ways_of(fabric, traffic);
    const std::vector<std::uint8_t> lanes(traffic.connections.size(), 3);
    const TracedRun run = run_ways(fabric, traffic, ways, lanes, options);
    REQUIRE(run.starts ==
            run_naive_ways(fabric, traffic, ways, lanes, options, LaneOptions{}).starts);
    PacketOptions credited = options;  // No simulation of its own: all of it arrives, every time.
    credited.fabric_credits = 20_KiB;
    const TracedRun first = run_ways(fabric, traffic, ways, lanes, credited);
    REQUIRE(std::ranges::all_of(first.arrivals, [](const auto& time) { return time.has_value(); }));
    credited.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
    credited.threads = 3;
    credited.min_shared = 1;
    REQUIRE(run_ways(fabric, traffic, ways, lanes, credited).starts == first.starts);
  }
}

// Each host of the first leaf sends to its opposite on the second, one message after the other.
struct ShiftRun {
  SimTime end;
  PacketStats stats;
  std::size_t links = 0;
};

ShiftRun run_shift(const TestFabric& fabric, RoutingPolicy policy, const PacketOptions& options,
                   int messages, Bytes size, SimTime every = {}, SimTime later = SimTime(1)) {
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = policy, .seed = 1});
  PacketNetwork network(simulator, routing, options);
  Traffic traffic;
  const auto half = static_cast<std::uint32_t>(fabric.hosts.size() / 2);
  for (std::uint32_t host = 0; host < half; ++host) {
    traffic.connections.push_back({.source = host, .target = half + host});
  }
  RandomStream random(1, "shift");
  for (int message = 0; message < messages; ++message) {
    for (std::uint32_t host = 0; host < half; ++host) {
      const auto late = random.below(static_cast<std::uint64_t>(later.picoseconds()));
      traffic.messages.push_back(
          {.connection = host,
           .time = every * message + SimTime(static_cast<std::int64_t>(late)),
           .size = size});
    }
  }
  std::ranges::stable_sort(traffic.messages, {}, &TestMessage::time);
  const std::vector<Woken> events = play(simulator, network, fabric, traffic);
  REQUIRE(!network.complaint());
  return {.end = events.back().time,
          .stats = network.stats().packets,
          .links = network.link_use().size()};
}

TEST_CASE("switches that choose for each packet spread a permutation that hashes let collide",
          "[adaptive]") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunk, kTrunk);
  constexpr std::int64_t kPackets = 2000;
  const SimTime alone = transfer_time(Bytes(4178), kTrunk.bandwidth) * (kPackets + 3) + 4_us;
  const auto end_of = [&](RoutingPolicy policy, const PacketOptions& options) {
    return run_shift(fabric, policy, options, 1, kPacket * kPackets);
  };
  const ShiftRun adaptive = end_of(RoutingPolicy::Adaptive, line_options());
  REQUIRE(adaptive.end / alone < 1.1);
  REQUIRE(adaptive.links == 2 * 8 + 2 * 8);
  REQUIRE(adaptive.stats.reordered > 0);
  REQUIRE(end_of(RoutingPolicy::EcmpHash, line_options()).end / alone > 1.9);
  // An exact comparison of queues and grades of 16 KiB both do; PFC and DCQCN do not stop it.
  PacketOptions exact = line_options();
  exact.adaptive.emplace();
  exact.adaptive->grades = {.step = Bytes(1), .grades = std::int64_t{1} << 40};
  REQUIRE(end_of(RoutingPolicy::Adaptive, exact).end / alone < 1.02);
  PacketOptions roce = roce_options();
  roce.rates = RateMeaning::Line;
  REQUIRE(end_of(RoutingPolicy::Adaptive, roce).end / alone < 1.2);
}

TEST_CASE(
    "controls with windows and credits spread a permutation where switches choose as where "
    "senders do",
    "[adaptive]") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunk, kTrunk);
  for (const char* const name : {"nscc", "receiver-credit", "swift", "dctcp"}) {
    for (const Retransmission recovery : {Retransmission::None, Retransmission::SelectiveRepeat}) {
      INFO(name << ", recovery " << static_cast<int>(recovery));
      PacketOptions options = roce_options();
      options.rates = RateMeaning::Line;
      options.retransmission = recovery;
      set_control(options, shipped_control(name));
      const auto run_with = [&](RoutingPolicy policy) {
        return run_shift(fabric, policy, options, 1, kPacket * 500);
      };
      const ShiftRun chosen = run_with(RoutingPolicy::Adaptive);
      REQUIRE(chosen.links == 2 * 8 + 2 * 8);
      REQUIRE(chosen.stats.reordered > 0);
      REQUIRE(chosen.stats.drops == 0);
      REQUIRE(chosen.stats.failures == 0);
      REQUIRE(chosen.end / run_with(RoutingPolicy::Spray).end < 1.05);
      REQUIRE(chosen.end / run_with(RoutingPolicy::EcmpHash).end < 0.7);
    }
  }
}

// Three hosts on each of two leaves, and two ways of half their rate, one of which is longer.
TestFabric uneven_ways(SimTime longer) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const Bandwidth rate = gigabits_per_second(50);
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  for (const SimTime latency : {1_us, longer}) {
    const NodeId spine = add_switch(builder, "spine");
    builder.add_duplex_link(left, spine, fabric_link(rate, latency));
    builder.add_duplex_link(spine, right, fabric_link(rate, 1_us));
  }
  for (const NodeId leaf : {left, left, left, right, right, right}) {
    builder.add_duplex_link(add_host(builder, hosts), leaf, kTrunk);
  }
  return {.topology = std::move(builder).build(), .hosts = hosts};
}

TEST_CASE("flowlets change ways after gaps, and keep order if those are longer than ways differ",
          "[adaptive]") {
  // Bursts of 20 packets of 6.7 us, every 40 us or up to 8 us later: gaps of at least 25 us.
  const auto run = [](SimTime longer, SimTime gap, Retransmission retransmission) {
    PacketOptions options = line_options();
    options.adaptive.emplace();
    options.adaptive->unit = Unit::Flowlet;
    options.adaptive->gap = gap;
    options.retransmission = retransmission;
    return run_shift(uneven_ways(longer), RoutingPolicy::Adaptive, options, 100, kPacket * 20,
                     40_us, 8_us);
  };
  const ShiftRun kept = run(3_us, 20_us, Retransmission::None);
  REQUIRE(kept.stats.reordered == 0);
  REQUIRE(kept.links == 6 + 4);  // Both ways are taken.
  REQUIRE(run(60_us, 20_us, Retransmission::None).stats.reordered > 0);
  REQUIRE(run(60_us, 100_us, Retransmission::None).stats.reordered == 0);
  // With go-back-N what is overtaken is sent again, and there is none of it where order is kept.
  REQUIRE(run(3_us, 20_us, Retransmission::GoBackN).stats.retransmitted == 0);
  const ShiftRun again = run(60_us, 20_us, Retransmission::GoBackN);
  REQUIRE(again.stats.retransmitted > 0);
  REQUIRE(again.stats.failures == 0);
}

TEST_CASE("long flows without gaps stay where they are with flowlets", "[adaptive]") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunk, kTrunk);
  PacketOptions options = line_options();
  options.adaptive.emplace();
  options.adaptive->unit = Unit::Flowlet;
  const ShiftRun run = run_shift(fabric, RoutingPolicy::Adaptive, options, 1, kPacket * 1000);
  REQUIRE(run.stats.reordered == 0);
  REQUIRE(run.links <= 16 + 2 * 8);
}

TEST_CASE("what does not go with switches that choose is refused", "[adaptive]") {
  const TestFabric fabric = one_switch(2, kTrunk);
  const auto error_with = [&](const auto& change) {
    PacketOptions options = line_options();
    options.adaptive.emplace();
    change(options);
    try {
      const PacketEngine engine(fabric.topology, options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE(error_with([](PacketOptions&) {}).empty());
  REQUIRE(error_with([](PacketOptions& options) {
            options.retransmission = Retransmission::GoBackN;
          }).find("expected no go-back-N where switches choose") != std::string::npos);
  REQUIRE(error_with([](PacketOptions& options) {
            options.retransmission = Retransmission::SelectiveRepeat;
            options.adaptive->unit = Unit::Flowlet;
          }).empty());
  REQUIRE(error_with([](PacketOptions& options) {
            set_control(options, shipped_control("hpcc"));
          }).find("expected a congestion control that does not look at the links of a path") !=
          std::string::npos);
  REQUIRE(error_with([](PacketOptions& options) {
            options.adaptive->entries = 3;
          }).find("expected a power of two") != std::string::npos);
  REQUIRE(error_with([](PacketOptions& options) {
            options.adaptive->grades.step = Bytes(0);
          }).find("expected grades of at least 1 B") != std::string::npos);
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = RoutingPolicy::EcmpHash, .seed = 1});
  PacketOptions options = line_options();
  options.adaptive.emplace();
  REQUIRE_THROWS_WITH(PacketNetwork(simulator, routing, options),
                      "packet engine: expected a fabric with routing adaptive where switches "
                      "choose ports, found ecmp");
}

TEST_CASE("a choice for connections is that of the other engines", "[adaptive]") {
  const TestFabric fabric = clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunk, kTrunk);
  PacketOptions options = line_options();
  options.adaptive.emplace();
  options.adaptive->unit = Unit::Connection;
  const ShiftRun run = run_shift(fabric, RoutingPolicy::Adaptive, options, 1, kPacket * 100);
  REQUIRE(run.stats.reordered == 0);
  REQUIRE(run.links == 16 + 16);
}

}  // namespace
}  // namespace trainyard
