// SPDX-License-Identifier: Apache-2.0
// What is published about lossless Ethernet fabrics, seen again on the packet engine. Each test
// names who found it; figures are those of the source, or follow from one rule: packets of all
// ingress ports wait in one queue, and pauses keep the ports equally full, so that ports, not
// flows, have equal shares of an egress port.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "network/packet/packet_engine.h"
#include "support/fabrics.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::int64_t kPublishedEndless = std::int64_t{1} << 40;
constexpr double kGigabits = 1e9;

// The switches of the paper: 12 MB of buffer (Zhu et al., SIGCOMM 2015, section 4).
PacketOptions pfc_only() {
  PacketOptions options = roce_options();
  options.rates = RateMeaning::Line;
  options.verb = RdmaVerb::Send;
  options.buffer = 12'000'000_B;
  options.control = CongestionControl::None;
  options.ecn = EcnPreset::Off;
  return options;
}

PacketOptions with_dcqcn() {
  PacketOptions options = pfc_only();
  options.control = CongestionControl::DcqcnPaper;
  options.ecn = EcnPreset::Dcqcn;
  return options;
}

std::vector<LinkId> path_by(const Topology& topology, std::span<const NodeId> nodes) {
  std::vector<LinkId> path;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    for (const LinkId link : topology.links_from(nodes[i])) {
      if (topology.link(link).target == nodes[i + 1]) {
        path.push_back(link);
        break;
      }
    }
  }
  REQUIRE(path.size() + 1 == nodes.size());
  return path;
}

void run_until(PacketEngine& engine, SimTime time) {
  std::vector<PacketEngine::Completion> completions;
  while (engine.next_border() <= time.picoseconds()) {
    engine.run_window(completions);
  }
}

// Flows without end by these paths, all from the beginning: what each sends from `from` to `to`,
// Gb/s on the line.
std::vector<double> rates_of(PacketEngine& engine, const std::vector<std::vector<LinkId>>& paths,
                             SimTime from, SimTime to) {
  std::vector<std::uint64_t> before;
  for (const std::vector<LinkId>& path : paths) {
    engine.add_connection(path);
  }
  for (std::uint32_t flow = 0; flow < paths.size(); ++flow) {
    engine.send(flow, {.time = 0, .size = kPublishedEndless});
  }
  run_until(engine, from);
  for (std::uint32_t flow = 0; flow < paths.size(); ++flow) {
    before.push_back(engine.counters(flow).packets);
  }
  run_until(engine, to);
  std::vector<double> rates;
  const double bits = 8.0 * static_cast<double>(engine.fabric().wire_of(4096, false));
  for (std::uint32_t flow = 0; flow < paths.size(); ++flow) {
    const auto packets = static_cast<double>(engine.counters(flow).packets - before[flow]);
    rates.push_back(bits * packets / (to - from).seconds() / kGigabits);
  }
  return rates;
}

std::uint64_t pauses_of(const PacketEngine& engine) {
  return engine.stats().pauses;
}

double fairness_of(const std::vector<double>& rates) {
  double sum = 0.0;
  double squares = 0.0;
  for (const double rate : rates) {
    sum += rate;
    squares += rate * rate;
  }
  return sum * sum / squares / static_cast<double>(rates.size());
}

// The testbed of Zhu et al., SIGCOMM 2015, figure 2: two pods of two racks and two leaves, two
// spines, everything at 40 Gb/s. Rack r of pod p is racks[2 p + r], and so on.
struct Testbed {
  Topology topology;
  std::vector<NodeId> racks{};
  std::vector<NodeId> leaves{};
  std::vector<NodeId> spines{};
  std::vector<std::vector<NodeId>> hosts{};  // Of each rack.
};

Testbed testbed(const LinkSpec& receiver_link) {
  const LinkSpec link = fabric_link(gigabits_per_second(40), 500_ns);
  TopologyBuilder builder;
  Testbed bed{.topology = TopologyBuilder().build()};
  for (int i = 0; i < 2; ++i) {
    bed.spines.push_back(add_switch(builder, "S" + std::to_string(i + 1)));
  }
  for (int i = 0; i < 4; ++i) {
    bed.racks.push_back(add_switch(builder, "T" + std::to_string(i + 1)));
    bed.leaves.push_back(add_switch(builder, "L" + std::to_string(i + 1)));
    for (const NodeId spine : bed.spines) {
      builder.add_duplex_link(bed.leaves.back(), spine, link);
    }
  }
  std::vector<NodeId> hosts;
  for (std::size_t rack = 0; rack < 4; ++rack) {
    const std::size_t pod = rack / 2 * 2;
    builder.add_duplex_link(bed.racks[rack], bed.leaves[pod], link);
    builder.add_duplex_link(bed.racks[rack], bed.leaves[pod + 1], link);
    bed.hosts.emplace_back();
    for (std::size_t host = 0; host < 5; ++host) {
      const bool is_receiver = rack == 3 && host == 0;
      builder.add_duplex_link(add_host(builder, hosts), bed.racks[rack],
                              is_receiver ? receiver_link : link);
      bed.hosts.back().push_back(hosts.back());
    }
  }
  bed.topology = std::move(builder).build();
  return bed;
}

const LinkSpec kTestbedLink = fabric_link(gigabits_per_second(40), 500_ns);

// From a host of the first rack to the receiver, by these leaves of the two pods and this spine.
std::vector<LinkId> across(const Testbed& bed, std::size_t host, std::size_t leaf,
                           std::size_t spine) {
  return path_by(bed.topology,
                 std::array{bed.hosts[0][host], bed.racks[0], bed.leaves[leaf], bed.spines[spine],
                            bed.leaves[2 + leaf], bed.racks[3], bed.hosts[3][0]});
}

TEST_CASE("PFC alone shares by ports: who is alone on one has as much as all behind another",
          "[published]") {
  // Zhu et al., SIGCOMM 2015, figures 3 and 8: H4 beside the receiver has up to 20 Gb/s, the three
  // that come by the leaves 5 to 7 of the rest; with DCQCN all four have about 10.
  const Testbed bed = testbed(kTestbedLink);
  const std::vector<LinkId> near =
      path_by(bed.topology, std::array{bed.hosts[3][1], bed.racks[3], bed.hosts[3][0]});
  const std::vector<std::vector<LinkId>> by_one{across(bed, 0, 0, 0), across(bed, 1, 0, 1),
                                                across(bed, 2, 0, 0), near};
  PacketEngine one(bed.topology, pfc_only());
  const std::vector<double> unfair = rates_of(one, by_one, 5_ms, 25_ms);
  REQUIRE(unfair[3] == Approx(20.0).epsilon(0.03));
  for (std::size_t flow = 0; flow < 3; ++flow) {
    REQUIRE(unfair[flow] == Approx(20.0 / 3).epsilon(0.03));
  }
  REQUIRE(one.stats().drops == 0);

  const std::vector<std::vector<LinkId>> by_two{across(bed, 0, 0, 0), across(bed, 1, 0, 0),
                                                across(bed, 2, 1, 0), near};
  PacketEngine two(bed.topology, pfc_only());
  const std::vector<double> thirds = rates_of(two, by_two, 5_ms, 25_ms);
  REQUIRE(thirds[3] == Approx(40.0 / 3).epsilon(0.03));
  REQUIRE(thirds[2] == Approx(40.0 / 3).epsilon(0.03));
  REQUIRE(thirds[0] == Approx(40.0 / 6).epsilon(0.03));

  PacketEngine fair(bed.topology, with_dcqcn());
  const std::vector<double> equal = rates_of(fair, by_one, 50_ms, 250_ms);
  REQUIRE(fairness_of(equal) > 0.98);
  REQUIRE(pauses_of(fair) * 100 < pauses_of(one));
}

TEST_CASE("a victim whose path is free has what the pauses of others leave it, and all with DCQCN",
          "[published]") {
  // Zhu et al., SIGCOMM 2015, figures 4 and 9: 20 Gb/s could be had, 10 come without congestion
  // control, about 4.5 once two more senders elsewhere join; DCQCN brings back 20.
  const Testbed bed = testbed(kTestbedLink);
  const std::vector<LinkId> victim = path_by(
      bed.topology,
      std::array{bed.hosts[0][4], bed.racks[0], bed.leaves[0], bed.racks[1], bed.hosts[1][0]});
  std::vector<std::vector<LinkId>> paths{victim, across(bed, 0, 0, 0), across(bed, 1, 0, 0),
                                         across(bed, 2, 1, 0), across(bed, 3, 1, 0)};
  PacketEngine four(bed.topology, pfc_only());
  const std::vector<double> some = rates_of(four, paths, 10_ms, 40_ms);
  REQUIRE(some[0] == Approx(10.0).epsilon(0.05));
  PacketEngine four_controlled(bed.topology, with_dcqcn());
  const double restored = rates_of(four_controlled, paths, 50_ms, 250_ms)[0];
  REQUIRE(restored > 18.0);
  REQUIRE(pauses_of(four_controlled) * 100 < pauses_of(four));

  for (std::size_t leaf = 2; leaf < 4; ++leaf) {
    paths.push_back(
        path_by(bed.topology, std::array{bed.hosts[2][leaf], bed.racks[2], bed.leaves[leaf],
                                         bed.racks[3], bed.hosts[3][0]}));
  }
  // They have a port each at the leaves of the receiver, the four another: 5 Gb/s for each of
  // these.
  PacketEngine six(bed.topology, pfc_only());
  const std::vector<double> more = rates_of(six, paths, 10_ms, 40_ms);
  REQUIRE(more[0] == Approx(5.0).epsilon(0.1));
  REQUIRE(more[5] == Approx(10.0).epsilon(0.1));
  // With equal shares of 40/6 the two beside it leave 40 - 2 * 40/6.
  PacketEngine six_controlled(bed.topology, with_dcqcn());
  REQUIRE(rates_of(six_controlled, paths, 50_ms, 250_ms)[0] > 0.9 * (40.0 - 80.0 / 6));
}

TEST_CASE("one receiver that hardly takes anything stops flows that never come near it",
          "[published]") {
  // Guo et al., "RDMA over commodity Ethernet at scale", SIGCOMM 2016: a host that keeps pausing
  // its switch stops the fabric. Hosts send no pauses here: a link of 1 % of the rate does the
  // same.
  const Testbed bed = testbed(fabric_link(Bandwidth(400'000'000), 500_ns));
  const std::vector<std::vector<LinkId>> paths{
      path_by(bed.topology, std::array{bed.hosts[0][4], bed.racks[0], bed.leaves[0], bed.racks[1],
                                       bed.hosts[1][0]}),
      across(bed, 0, 0, 0), across(bed, 1, 1, 1)};
  PacketEngine storm(bed.topology, pfc_only());
  const std::vector<double> stopped = rates_of(storm, paths, 20_ms, 60_ms);
  REQUIRE(stopped[0] < 0.4);  // As slow as its neighbour on the uplink.
  REQUIRE(stopped[0] == Approx(stopped[1]).epsilon(0.1));
  const Port& uplink = *storm.port(paths[0][1]);
  REQUIRE(static_cast<double>(storm.paused_time(uplink)) > 0.9 * (60_ms).picoseconds());
  REQUIRE(storm.stats().drops == 0);
  // DCQCN does not end it, as they found: the flows of 200 Mb/s that would fit send a packet in
  // 167 us, in which three timers undo what a CNP takes. It needs a watchdog.
  PacketEngine controlled(bed.topology, with_dcqcn());
  REQUIRE(rates_of(controlled, paths, 500_ms, 600_ms)[0] < 1.0);
}

TEST_CASE("pauses walk to the sources, a buffer at a time", "[published]") {
  // Six hops from the slow receiver to the hosts, each a share alpha / (1 + alpha) of 12 MB that
  // fills at 40 Gb/s at most.
  const Testbed bed = testbed(fabric_link(Bandwidth(400'000'000), 500_ns));
  PacketEngine engine(bed.topology, pfc_only());
  const std::vector<LinkId> path = across(bed, 0, 0, 0);
  engine.add_connection(path);
  engine.send(0, {.time = 0, .size = kPublishedEndless});
  std::vector<SimTime> stopped(path.size() - 1);
  for (SimTime now = 10_us; now < 4_ms; now += 10_us) {
    run_until(engine, now);
    for (std::size_t hop = 0; hop + 1 < path.size(); ++hop) {
      if (stopped[hop] == SimTime() && engine.port(path[hop])->counters.pauses_received > 0) {
        stopped[hop] = now;
      }
    }
  }
  for (std::size_t hop = 0; hop + 2 < path.size(); ++hop) {
    INFO("hop " << hop << " at " << to_string(stopped[hop]));
    REQUIRE(stopped[hop + 1] > SimTime());
    REQUIRE(stopped[hop] > stopped[hop + 1]);
    const double fill = 8.0 * 12e6 / 9.0 / 40e9;  // alpha = 1/8.
    REQUIRE((stopped[hop] - stopped[hop + 1]).seconds() == Approx(fill).epsilon(0.15));
  }
  REQUIRE(stopped[0] < 2_ms);
}

TEST_CASE("a parking lot halves the share at each switch without congestion control",
          "[published]") {
  // Hosts 0 to 3 on a row of switches send to the host behind the fifth: at each of them the port
  // of the host and that of all behind it have the same.
  const LinkSpec link = fabric_link(gigabits_per_second(40), 500_ns);
  const TestFabric fabric = switch_row(link, {link, link, link, link});
  Routing routing(fabric.topology, {});
  std::vector<std::vector<LinkId>> paths(4);
  for (std::uint32_t host = 0; host < 4; ++host) {
    REQUIRE(routing.route(fabric.hosts[host], fabric.hosts[4], 0, paths[host]));
  }
  PacketEngine engine(fabric.topology, pfc_only());
  const std::vector<double> rates = rates_of(engine, paths, 10_ms, 40_ms);
  constexpr std::array<double, 4> kExpected{5.0, 5.0, 10.0, 20.0};
  for (std::size_t host = 0; host < 4; ++host) {
    REQUIRE(rates[host] == Approx(kExpected[host]).epsilon(0.03));
  }
  PacketEngine controlled(fabric.topology, with_dcqcn());
  REQUIRE(fairness_of(rates_of(controlled, paths, 50_ms, 250_ms)) > 0.98);
}

TEST_CASE("a pause stops what goes elsewhere too: head-of-line blocking", "[published]") {
  // Host 0 sends to 4 and to 5, hosts 1 to 3 to 4. A quarter of the link to 4 belongs to the port
  // of host 0, which sends to both in turn: 5 gets no more, though its link is idle.
  const TestFabric fabric = one_switch(6, kTestbedLink);
  const auto path = [](std::uint32_t from, std::uint32_t to) {
    return std::vector<LinkId>{LinkId(2 * from), LinkId(2 * to + 1)};
  };
  const std::vector<std::vector<LinkId>> paths{path(0, 5), path(0, 4), path(1, 4), path(2, 4),
                                               path(3, 4)};
  PacketEngine engine(fabric.topology, pfc_only());
  const std::vector<double> rates = rates_of(engine, paths, 5_ms, 25_ms);
  REQUIRE(rates[0] == Approx(10.0).epsilon(0.05));
  REQUIRE(rates[1] == Approx(10.0).epsilon(0.05));
  PacketEngine controlled(fabric.topology, with_dcqcn());
  REQUIRE(rates_of(controlled, paths, 50_ms, 250_ms)[0] > 0.9 * 30.0);
}

TEST_CASE("with marks an incast sends a hundredth of the pauses, and its queue is short",
          "[published]") {
  // Zhu et al., SIGCOMM 2015, section 6: pauses at the spines from millions to hundreds.
  const TestFabric fabric = one_switch(21, kTestbedLink);
  std::vector<std::vector<LinkId>> paths;
  for (std::uint32_t host = 0; host < 20; ++host) {
    paths.push_back({LinkId(2 * host), LinkId(41)});
  }
  PacketEngine without(fabric.topology, pfc_only());
  const std::vector<double> stopped = rates_of(without, paths, 50_ms, 150_ms);
  PacketEngine with(fabric.topology, with_dcqcn());
  const std::vector<double> slowed = rates_of(with, paths, 50_ms, 150_ms);
  REQUIRE(pauses_of(without) > 100 * pauses_of(with));
  REQUIRE(without.port(LinkId(41))->queued_bytes > 5'000'000);
  REQUIRE(with.port(LinkId(41))->queued_bytes < 250'000);
  // Neither loses throughput or packets.
  for (const std::vector<double>* rates : {&stopped, &slowed}) {
    double sum = 0.0;
    for (const double rate : *rates) {
      sum += rate;
    }
    REQUIRE(sum == Approx(40.0).epsilon(0.01));
  }
  REQUIRE(without.stats().drops + with.stats().drops == 0);
}

}  // namespace
}  // namespace trainyard
