// SPDX-License-Identifier: Apache-2.0
// Connections that take another path once switches know of a failed cable: packet by packet as an
// ordinary simulation says, and everything arrives.
#include "support/catch.h"

#include "network/packet_parts/packet_routes.h"

#include <algorithm>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/naive_reliable.h"
#include "support/packet_runs.h"
#include "support/recorder.h"
#include "support/traced_run.h"
#include "topology/routing/surviving_routes.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kRoutesLink = fabric_link(gigabits_per_second(100), 1_us);

PacketOptions failing(Retransmission retransmission) {
  PacketOptions options = recovering_options(retransmission);
  options.retry.timeout = 100_us;
  return options;
}

// The first trunk of the path of this connection.
LinkId trunk_of(const TestFabric& fabric, std::uint32_t source, std::uint32_t target,
                std::uint32_t label) {
  Routing routing(fabric.topology, kTestRouting);
  std::vector<LinkId> path;
  REQUIRE(routing.route(fabric.hosts[source], fabric.hosts[target], label, path));
  return path[1];
}

TEST_CASE("the change of a path that holds is the last one up to that time") {
  PacketRoutes routes;
  REQUIRE(routes.empty());
  routes.add(3, 100, {.first = 7, .reverse = 8, .hops = 2});
  routes.add(3, 200, {.first = 9, .reverse = 10, .hops = 4});
  REQUIRE(!routes.empty());
  REQUIRE(routes.at(2, 1000) == nullptr);
  REQUIRE(routes.at(3, 99) == nullptr);
  REQUIRE(routes.at(3, 100)->path.first == 7);
  REQUIRE(routes.at(3, 199)->path.first == 7);
  REQUIRE(routes.at(3, 200)->path.first == 9);
  routes.count(3, 150, 10);
  routes.count(3, 250, 20);
  routes.count(3, 199, 1);
  REQUIRE(routes.of(3)[0].payload == 11);
  REQUIRE(routes.of(3)[1].payload == 20);
  REQUIRE(routes.of(1).empty());
}

TEST_CASE("over a failed spine cable everything arrives once paths have changed, and not without") {
  const TestFabric fabric =
      clos({.leaves = 4, .hosts_per_leaf = 4, .spines = 4}, kRoutesLink, kRoutesLink);
  for (const Retransmission rules : {Retransmission::GoBackN, Retransmission::SelectiveRepeat}) {
    PacketOptions options = failing(rules);
    options.selective.short_timeout = 100_us;
    options.failures = {{.link = trunk_of(fabric, 0, 4, 0), .time = 50_us}};
    for (const bool converges : {true, false}) {
      INFO("rules=" << static_cast<int>(rules) << " converges=" << converges);
      options.convergence = converges ? std::optional(300_us) : std::nullopt;
      Simulator simulator;
      Routing routing(fabric.topology, kTestRouting);
      PacketNetwork network(simulator, routing, options);
      Recorder done(simulator);
      // Everybody sends to the next leaf and back.
      for (std::uint32_t host = 0; host < 16; ++host) {
        network.send(network.connect(
                         {.source = fabric.hosts[host], .target = fabric.hosts[(host + 4) % 16]}),
                     2_MiB, done, host);
      }
      simulator.run();
      const NetworkStats stats = network.stats();
      REQUIRE(stats.packets.link_down > 0);
      REQUIRE(network.complaint().has_value() == !converges);
      REQUIRE((done.events().size() == 16) == converges);
      REQUIRE((stats.packets.failures == 0) == converges);
      if (!converges) {
        continue;
      }
      // Whatever was lost or sent again, each byte of payload counts once on each link of a path.
      std::int64_t trunks = 0;
      for (const LinkUse& use : network.link_use()) {
        const Link& link = fabric.topology.link(use.link);
        const bool is_trunk = fabric.topology.node(link.source).kind == NodeKind::Switch &&
                              fabric.topology.node(link.target).kind == NodeKind::Switch;
        trunks += is_trunk ? use.bytes.count() : 0;
      }
      REQUIRE(trunks == 16 * 2 * (2_MiB).count());
    }
  }
}

TEST_CASE("a connection that begins after the failure takes what is left at once") {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 2}, kRoutesLink, kRoutesLink);
  PacketOptions options = failing(Retransmission::GoBackN);
  options.failures = {{.link = trunk_of(fabric, 0, 1, 0), .time = 10_us}};
  options.convergence = 20_us;
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  Recorder done(simulator);
  simulator.schedule_at(30_us, done, 1);
  simulator.run();
  network.send(network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]}), 1_MiB, done,
               0);
  simulator.run();
  REQUIRE(done.events().size() == 2);
  REQUIRE(network.stats().packets.link_down == 0);
}

TEST_CASE("new paths without retransmission are refused") {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 2}, kRoutesLink, kRoutesLink);
  PacketOptions options = failing(Retransmission::None);
  options.convergence = 1_us;
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  REQUIRE_THROWS_AS(PacketNetwork(simulator, routing, options), ConfigError);
}

TEST_CASE("new paths after failures, packet by packet against an ordinary simulation") {
  std::uint64_t moved = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "reroutes");
    const ClosShape shape{.leaves = 2 + static_cast<int>(random.below(2)),
                          .hosts_per_leaf = 1 + static_cast<int>(random.below(2)),
                          .spines = 2 + static_cast<int>(random.below(3))};
    const LinkSpec host_link = random_link(random);
    const TestFabric fabric = clos(shape, host_link, random_link(random));
    const Traffic traffic = traffic_between_hosts(fabric, random, 16);
    PacketOptions options =
        failing(random.below(2) == 0 ? Retransmission::GoBackN : Retransmission::SelectiveRepeat);
    options.packets_per_ack = static_cast<int>(random.below(3)) * 8;
    options.buffer = Bytes(static_cast<std::int64_t>(random.below(2) * 100'000));
    options.selective.short_timeout = 100_us;
    options.selective.long_timeout = 300_us;
    options.retry.retries = 3;
    options.selective.retries = 3;
    options.convergence = SimTime(static_cast<std::int64_t>(random.below(400'000'000)));
    const auto& paths = paths_of(fabric, traffic);
    // A trunk of one of the paths fails, and maybe later another one of what is then left.
    NaiveFailures failures;
    std::vector<NaiveReroute> reroutes;
    std::vector<std::vector<LinkId>> now = paths;
    std::vector<LinkId> failed;
    SimTime time;
    for (std::uint64_t left = 1 + random.below(2); left > 0; --left) {
      const std::vector<LinkId>& path = now[random.below(now.size())];
      time += SimTime(static_cast<std::int64_t>(1 + random.below(100'000'000)));
      if (path.size() < 3) {
        continue;
      }
      failed.push_back(path[1]);
      failures.emplace_back(path[1], time);
      options.failures.push_back({.link = path[1], .time = time});
      SurvivingRoutes routes(fabric.topology, kTestRouting, failed);
      for (std::size_t i = 0; i < now.size(); ++i) {
        const TestConnection& connection = traffic.connections[i];
        if (routes.reroute({.source = fabric.hosts[connection.source],
                            .target = fabric.hosts[connection.target],
                            .flow_label = connection.flow_label},
                           now[i]) == SurvivingRoutes::Outcome::Moved) {
          reroutes.push_back(
              {.connection = i, .from = time + *options.convergence, .path = now[i]});
        }
      }
    }
    const NaiveReliableRun naive =
        run_naive_reliable(fabric, traffic, paths, options, failures, reroutes);

    const TracedRun run = run_traced(fabric, traffic, options);
    REQUIRE(run.starts == naive.starts);
    REQUIRE(run.arrivals == naive.arrivals);
    const PacketStats& stats = run.stats;
    REQUIRE(stats.link_down == naive.link_down);
    REQUIRE(stats.retransmitted == naive.resent);
    REQUIRE(stats.failures == naive.failures);
    const bool is_whole =
        std::ranges::all_of(run.arrivals, [](const auto& at) { return at.has_value(); });
    REQUIRE((is_whole || stats.failures > 0));
    if (seed % 4 == 0) {
      options.threads = 3;
      options.min_shared = 1;
      REQUIRE(run_traced(fabric, traffic, options).starts == run.starts);
    }
    moved += reroutes.size();
    lost += stats.link_down;
  }
  REQUIRE(moved > 20);
  REQUIRE(lost > 20);
}

}  // namespace
}  // namespace trainyard
