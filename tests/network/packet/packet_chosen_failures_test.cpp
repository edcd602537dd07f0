// SPDX-License-Identifier: Apache-2.0
// Cables that fail where switches choose ports, and planes that stand in for each other.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <set>

#include "network/packet/packet.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/packet_runs.h"
#include "support/recorder.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kWaysLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kWaysPacket = 4096_B;

// Hosts of one side send to their opposites, `flows` messages each.
Traffic to_opposites(const TestFabric& fabric, std::uint32_t flows, Bytes size) {
  Traffic traffic;
  const auto half = static_cast<std::uint32_t>(fabric.hosts.size() / 2);
  for (std::uint32_t host = 0; host < half; ++host) {
    for (std::uint32_t label = 0; label < flows; ++label) {
      traffic.messages.push_back({.connection = host * flows + label, .time = {}, .size = size});
      traffic.connections.push_back({.source = host, .target = half + host, .flow_label = label});
    }
  }
  return traffic;
}

PacketOptions failing_options(SimTime convergence) {
  PacketOptions options = recovering_options(Retransmission::SelectiveRepeat);
  options.convergence = convergence;
  return options;
}

TracedRun run_chosen(const TestFabric& fabric, const Traffic& traffic,
                     const PacketOptions& options) {
  return run_traced(fabric, traffic, options, {.policy = RoutingPolicy::Adaptive, .seed = 1});
}

SimTime end_of(const TracedRun& run) {
  return **std::ranges::max_element(run.arrivals);
}

TEST_CASE("switches leave out a cable from when they know that it has failed", "[adaptive]") {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kWaysLink, kWaysLink);
  const Traffic traffic = to_opposites(fabric, 2, kWaysPacket * 1000);  // Twins share their ways.
  const std::set<std::uint32_t> of_spine{0, 1, 32, 33};                 // The first spine's links.
  PacketOptions options = failing_options(100_us);
  const SimTime whole = end_of(run_chosen(fabric, traffic, options));
  options.failures = {{.link = LinkId(0), .time = 50_us}};
  const TracedRun run = run_chosen(fabric, traffic, options);
  REQUIRE(run.is_whole());
  REQUIRE(run.stats.link_down > 0);
  REQUIRE(run.stats.failures == 0);
  const auto late = [&](const TracedRun& of, SimTime from) {
    return std::ranges::count_if(of.starts, [&](const PacketStart& start) {
      return of_spine.contains(start.link) && start.time > from.picoseconds();
    });
  };
  REQUIRE(late(run, 50_us) > 0);
  REQUIRE(late(run, 180_us) == 0);  // What was on its way, or waited, has gone.
  // Seven trunks are left of eight. What was lost twice waits for a timeout of 320 us after 100 us
  // of convergence.
  REQUIRE((end_of(run) - 50_us) / (whole - 50_us) > 8.0 / 7.0);
  REQUIRE((end_of(run) - 500_us) / (whole - 50_us) < 8.0 / 7.0);
  options.threads = 3;
  options.min_shared = 1;
  options.longest_window = 100_ns;
  REQUIRE((run_chosen(fabric, traffic, options).starts == run.starts));
  options.convergence = std::nullopt;  // Nobody ever knows.
  REQUIRE(late(run_chosen(fabric, traffic, options), 180_us) > 0);
}

TEST_CASE("connections that begin after a failure choose from what is left", "[adaptive]") {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 1, .spines = 4}, kWaysLink, kWaysLink);
  for (const bool has_twin : {true, false}) {
    PacketOptions options = failing_options(20_us);
    options.failures = {{.link = LinkId(0), .time = 10_us}, {.link = LinkId(4), .time = 100_us}};
    Simulator simulator;
    Routing routing(fabric.topology, {.policy = RoutingPolicy::Adaptive, .seed = 1});
    PacketNetwork network(simulator, routing, options);
    Recorder done(simulator);
    if (has_twin) {  // It sends nothing itself, but is there when the cable fails.
      static_cast<void>(network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]}));
    }
    simulator.schedule_at(30_us, done, 1);
    simulator.run();
    network.send(network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]}), 200'000_B,
                 done, 0);
    simulator.run();
    REQUIRE(done.events().size() == 2);
    REQUIRE(network.stats().packets.link_down == 0);
    Bytes on_trunks;
    for (const LinkUse& use : network.link_use()) {
      REQUIRE(use.link != LinkId(0));
      on_trunks += use.link.value() < 8 && use.link.value() % 2 == 0 ? use.bytes : Bytes(0);
    }
    REQUIRE(on_trunks == 200'000_B);
  }
}

// Two planes of two leaves and two spines each, and two hosts on each side, whose adapters have a
// cable into each plane. The switches are the leaves, of the first plane first.
TestFabric two_planes() {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> adapters;
  std::vector<NodeId> leaves;
  LinkSpec inside = fabric_link(gigabits_per_second(400), 100_ns);
  inside.kind = LinkKind::Pcie;
  for (int host = 0; host < 4; ++host) {
    const NodeId gpu = add_host(builder, hosts);
    adapters.push_back(builder.add_node({.kind = NodeKind::Nic,
                                         .name = "nic " + std::to_string(host),
                                         .server = builder.node(gpu).server}));
    builder.add_duplex_link(gpu, adapters.back(), inside);
  }
  for (int plane = 0; plane < 2; ++plane) {
    const std::array spines{add_switch(builder, "spine"), add_switch(builder, "spine")};
    for (std::size_t side = 0; side < 2; ++side) {
      leaves.push_back(add_switch(builder, "leaf"));
      for (const NodeId spine : spines) {
        builder.add_duplex_link(leaves.back(), spine, kWaysLink);
      }
      builder.add_duplex_link(adapters[2 * side], leaves.back(), kWaysLink);
      builder.add_duplex_link(adapters[2 * side + 1], leaves.back(), kWaysLink);
    }
  }
  return {.topology = std::move(builder).build(), .hosts = hosts, .switches = leaves};
}

TEST_CASE("where a plane fails the other one carries all that two did, at the rate of one",
          "[adaptive]") {
  const TestFabric fabric = two_planes();
  const Traffic traffic =
      to_opposites(fabric, 2, kWaysPacket * 2000);  // One flow of a host a plane.
  const SimTime alone = transfer_time(4178_B * 2000, kWaysLink.bandwidth);
  const SimTime fails = 200_us;
  const auto cables = fabric.topology.links_from(fabric.switches[0]);
  PacketOptions options = failing_options(50_us);
  const SimTime whole = end_of(run_chosen(fabric, traffic, options));
  REQUIRE(whole > alone);
  REQUIRE(whole < alone + 20_us);
  // The cable of the first adapter, and all that lead up from its leaf.
  for (const bool is_of_adapter : {true, false}) {
    INFO("adapter=" << is_of_adapter);
    options.failures = {{.link = cables[is_of_adapter ? 2 : 0], .time = fails}};
    if (!is_of_adapter) {
      options.failures.push_back({.link = cables[1], .time = fails});
    }
    options.threads = 1;
    const TracedRun run = run_chosen(fabric, traffic, options);
    REQUIRE(run.is_whole());
    REQUIRE(run.stats.failures == 0);
    // The plane that is left is busy all the time: it carries 2 S less what the other one did.
    const SimTime expected = alone * 2 - fails;
    REQUIRE(end_of(run) > expected);
    REQUIRE(end_of(run) < expected + 100_us);
    if (is_of_adapter) {  // The other host is not concerned.
      REQUIRE(std::max(*run.arrivals[2], *run.arrivals[3]) < alone + 40_us);
    }
    options.threads = 3;
    options.min_shared = 1;
    REQUIRE((run_chosen(fabric, traffic, options).starts == run.starts));
  }
}

}  // namespace
}  // namespace trainyard
