// SPDX-License-Identifier: Apache-2.0
// Exact fast-forward against the same run without it: on drawn islands of hosts that do nearly the
// same again and again, or send long messages, all completions, in their order, and all counters
// are equal bit by bit, with any number of threads.
#include "network/packet/packet_phases.h"
#include "support/catch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "network/engines/make_network.h"
#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/messages.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

struct Islands {
  TestFabric fabric;
  std::uint32_t count = 0;
  std::uint32_t hosts = 0;  // Hosts of each island.
};

// Alike but for the last one, some of the time.
Islands draw_islands(RandomStream& random) {
  Islands islands{.fabric = {.topology = TopologyBuilder().build(), .hosts = {}},
                  .count = static_cast<std::uint32_t>(2 + random.below(3)),
                  .hosts = static_cast<std::uint32_t>(2 + random.below(5))};
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  LinkSpec link = random_link(random);
  const LinkSpec trunk = random_link(random);
  const bool has_two = random.below(3) == 0;
  const bool is_odd = random.below(4) == 0;
  for (std::uint32_t island = 0; island < islands.count; ++island) {
    const NodeId near = add_switch(builder, "near " + std::to_string(island));
    const NodeId far = has_two ? add_switch(builder, "far " + std::to_string(island)) : near;
    if (has_two) {
      builder.add_duplex_link(near, far, trunk);
    }
    if (is_odd && island + 1 == islands.count) {
      link.bandwidth = link.bandwidth.scaled(2);
    }
    for (std::uint32_t host = 0; host < islands.hosts; ++host) {
      builder.add_duplex_link(add_host(builder, hosts), host % 2 == 0 ? near : far, link);
    }
  }
  islands.fabric = {.topology = std::move(builder).build(), .hosts = std::move(hosts)};
  return islands;
}

struct Motif {
  std::vector<TestConnection> connections;
  std::vector<TestMessage> messages;
};

Motif draw_motif(std::uint32_t hosts, RandomStream& random) {
  Motif motif;
  const bool is_ring = random.below(2) == 0;
  for (std::uint64_t i = 0; i < (is_ring ? hosts : 1 + random.below(2 * hosts)); ++i) {
    const auto from = static_cast<std::uint32_t>(is_ring ? i : random.below(hosts));
    const auto by = static_cast<std::uint32_t>(is_ring ? 1 : 1 + random.below(hosts - 1));
    motif.connections.push_back({.source = from, .target = (from + by) % hosts});
  }
  SimTime time;
  for (std::uint64_t i = 0; i < (is_ring ? hosts : 1 + random.below(12)); ++i) {
    time += is_ring || random.below(2) == 0
                ? SimTime()
                : SimTime(static_cast<std::int64_t>(random.below(20'000'000)));
    const auto connection = is_ring ? i : random.below(motif.connections.size());
    motif.messages.push_back({.connection = static_cast<std::uint32_t>(connection),
                              .time = time,
                              .size = Bytes(static_cast<std::int64_t>(random.below(400'000)))});
  }
  return motif;
}

// The motif on every island, several times, now and then with a change.
Traffic draw_traffic(const Islands& islands, RandomStream& random) {
  const Motif motif = draw_motif(islands.hosts, random);
  const auto per_island = static_cast<std::uint32_t>(motif.connections.size());
  Traffic traffic;
  for (std::uint32_t island = 0; island < islands.count; ++island) {
    for (TestConnection connection : motif.connections) {
      connection.source += island * islands.hosts;
      connection.target += island * islands.hosts;
      traffic.connections.push_back(connection);
    }
  }
  // From far too short for one after the other to ample.
  const auto gap = static_cast<std::int64_t>(1'000'000 << random.below(10));
  const bool is_together = random.below(2) == 0;
  const std::uint64_t changes = random.below(3) * 5;  // In a hundred messages.
  const std::uint64_t times = 2 + random.below(5);
  for (std::uint64_t time = 0; time < times; ++time) {
    for (std::uint32_t island = 0; island < islands.count; ++island) {
      const SimTime begin(static_cast<std::int64_t>(time) * gap +
                          (is_together ? 0 : static_cast<std::int64_t>(random.below(5'000'000))));
      for (TestMessage message : motif.messages) {
        message.connection += island * per_island;
        message.time += begin;
        if (random.below(100) < changes) {
          message.size = Bytes(static_cast<std::int64_t>(random.below(400'000)));
        }
        if (random.below(100) < changes) {
          message.time += SimTime(static_cast<std::int64_t>(random.below(1'000'000)));
        }
        traffic.messages.push_back(message);
        if (random.below(100) < changes) {
          traffic.messages.pop_back();
        }
      }
    }
  }
  std::ranges::stable_sort(traffic.messages, {}, &TestMessage::time);
  return traffic;
}

PacketOptions draw_options(RandomStream& random) {
  PacketOptions options = roce_options();
  options.mtu = Bytes(std::int64_t{1024} << random.below(3));
  options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  options.ecn = static_cast<EcnPreset>(random.below(4));
  options.pfc = random.below(4) != 0;
  options.packets_per_ack = static_cast<int>(random.below(3)) * 8;
  if (random.below(3) == 0) {
    options.control = CongestionControl::None;
  }
  return options;
}

struct PhasesRun {
  std::vector<Woken> completions{};
  std::vector<std::uint64_t> counted{};
  std::uint64_t skipped = 0;
  std::uint64_t hops = 0;
};

PhasesRun run_phases(const TestFabric& fabric, const Traffic& traffic,
                     const PacketOptions& options) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  const auto network = make_network(Fidelity::Packet, simulator, routing, options);
  PhasesRun run;
  run.completions = play(simulator, *network, fabric, traffic);
  const NetworkStats stats = network->stats();
  run.counted = {stats.messages,      static_cast<std::uint64_t>(stats.bytes.count()),
                 stats.packets.acks,  stats.packets.cnps,
                 stats.packets.marks, stats.packets.pauses,
                 stats.packets.drops, stats.packets.hops};
  add_port_counts(*network, run.counted);
  for (std::uint32_t id = 0; id < traffic.connections.size(); ++id) {
    run.counted.push_back(network->connection_counters(ConnectionId(id))->packets);
  }
  for (const LinkUse& use : network->link_use()) {
    run.counted.push_back(static_cast<std::uint64_t>(use.bytes.count()));
  }
  REQUIRE_FALSE(network->complaint().has_value() != (stats.packets.drops > 0));
  run.skipped = stats.packets.skipped_hops;
  run.hops = stats.packets.hops;
  return run;
}

// Runs with fast-forward, which must be to the bit what it is without, on one thread and several.
PhasesRun run_as_without(const TestFabric& fabric, const Traffic& traffic, PacketOptions options,
                         int threads) {
  const PhasesRun plain = run_phases(fabric, traffic, options);
  options.fast_forward = FastForward::Exact;
  PhasesRun fast = run_phases(fabric, traffic, options);
  REQUIRE(fast.completions == plain.completions);
  REQUIRE(fast.counted == plain.counted);
  options.threads = threads;
  const PhasesRun shared = run_phases(fabric, traffic, options);
  REQUIRE(shared.completions == plain.completions);
  REQUIRE(shared.counted == plain.counted);
  REQUIRE(shared.skipped == fast.skipped);
  return fast;
}

TEST_CASE("what fast-forward skips is to the bit what it would have been: drawn islands",
          "[packet]") {
  std::uint64_t skipped = 0;
  std::uint64_t hops = 0;
  std::uint64_t partly = 0;
  for (std::uint64_t seed = 0; seed < cases(400); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "fast-forward");
    const Islands islands = draw_islands(random);
    const Traffic traffic = draw_traffic(islands, random);
    const PhasesRun fast = run_as_without(islands.fabric, traffic, draw_options(random),
                                          static_cast<int>(2 + seed % 3));
    skipped += fast.skipped;
    hops += fast.hops;
    partly += fast.skipped > 0 && fast.skipped < fast.hops / 2 ? 1 : 0;
  }
  INFO(skipped << " of " << hops << ", " << partly);
  REQUIRE(skipped > hops / 5);
  REQUIRE((kIsSanitized || partly > 20));
}

// Long messages, between hosts of an island or of two, and now and then a short one.
Traffic draw_long_traffic(const Islands& islands, RandomStream& random) {
  Traffic traffic;
  const auto all = static_cast<std::uint32_t>(islands.fabric.hosts.size());
  const std::uint64_t joins = random.below(3);  // In ten connections.
  for (std::uint64_t i = 0; i < 2 + random.below(6); ++i) {
    const auto from = static_cast<std::uint32_t>(random.below(all));
    const std::uint32_t first = from - from % islands.hosts;
    const auto by = static_cast<std::uint32_t>(1 + random.below(islands.hosts - 1));
    traffic.connections.push_back(
        {.source = from, .target = first + (from - first + by) % islands.hosts});
    if (random.below(10) < joins) {
      traffic.connections.push_back(traffic.connections[random.below(i + 1)]);
    }
  }
  for (std::uint32_t id = 0; id < traffic.connections.size(); ++id) {
    const auto begin = static_cast<std::int64_t>(random.below(2) * random.below(50'000'000));
    traffic.messages.push_back(
        {.connection = id,
         .time = SimTime(begin),
         .size = Bytes(static_cast<std::int64_t>(500'000 + random.below(3'000'000)))});
  }
  for (std::uint64_t i = random.below(6); i > 0; --i) {
    traffic.messages.push_back(
        {.connection = static_cast<std::uint32_t>(random.below(traffic.connections.size())),
         .time = SimTime(static_cast<std::int64_t>(random.below(300'000'000))),
         .size = Bytes(static_cast<std::int64_t>(random.below(200'000)))});
  }
  std::ranges::stable_sort(traffic.messages, {}, &TestMessage::time);
  return traffic;
}

TEST_CASE("what fast-forward skips inside long messages is to the bit what it would have been",
          "[packet]") {
  std::uint64_t skipped = 0;
  std::uint64_t hops = 0;
  std::uint64_t often = 0;
  for (std::uint64_t seed = 0; seed < cases(150); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "fast-forward of long messages");
    const Islands islands = draw_islands(random);
    const Traffic traffic = draw_long_traffic(islands, random);
    const PhasesRun fast = run_as_without(islands.fabric, traffic, draw_options(random),
                                          static_cast<int>(2 + seed % 3));
    skipped += fast.skipped;
    hops += fast.hops;
    often += fast.skipped > fast.hops / 2 ? 1 : 0;
  }
  INFO(skipped << " of " << hops << ", " << often);
  REQUIRE(skipped > hops / 10);
  REQUIRE((kIsSanitized || often > 10));
}

}  // namespace
}  // namespace trainyard
