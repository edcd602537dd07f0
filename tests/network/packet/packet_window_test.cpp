// SPDX-License-Identifier: Apache-2.0
// The windows of the packet engine against the formulas of store-and-forward and cut-through, and,
// packet by packet, against an ordinary simulation of the same ports.
#include "support/catch.h"

#include <algorithm>

#include "network/packet/packet.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/naive_packets.h"
#include "support/recorder.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

using namespace literals;

// `hosts` hosts below the first of `switches` switches in a row, one more behind the last.
struct Row {
  Topology topology;
  std::vector<NodeId> hosts;
};

Row row_of(int hosts, int switches, const LinkSpec& link, SimTime switch_latency) {
  TopologyBuilder builder;
  std::vector<NodeId> nodes;
  std::vector<NodeId> row;
  for (int i = 0; i < switches; ++i) {
    row.push_back(builder.add_node({.kind = NodeKind::Switch,
                                    .name = "switch " + std::to_string(i),
                                    .latency = switch_latency}));
  }
  for (int host = 0; host < hosts; ++host) {
    builder.add_duplex_link(add_host(builder, nodes), row.front(), link);
  }
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    builder.add_duplex_link(row[i], row[i + 1], link);
  }
  builder.add_duplex_link(add_host(builder, nodes), row.back(), link);
  return {.topology = std::move(builder).build(), .hosts = std::move(nodes)};
}

// All but the last host send `packets` full packets to the last one at once; when each is complete.
std::vector<SimTime> send_to_last(const Row& row, std::int64_t packets, Forwarding forwarding,
                                  std::uint64_t* peak = nullptr) {
  Simulator simulator;
  Routing routing(row.topology, {});
  PacketNetwork network(
      simulator, routing,
      {.verb = RdmaVerb::Send, .rates = RateMeaning::Line, .forwarding = forwarding});
  Recorder done(simulator);
  for (std::size_t host = 0; host + 1 < row.hosts.size(); ++host) {
    const ConnectionId connection =
        network.connect({.source = row.hosts[host], .target = row.hosts.back()});
    network.send(connection, 4096_B * packets, done, host);
  }
  simulator.run();
  std::vector<SimTime> times(row.hosts.size() - 1);
  for (const Woken& event : done.events()) {
    times[event.token] = event.time;
  }
  if (peak != nullptr) {
    const LinkId last(row.topology.link_count() - 1);
    *peak = static_cast<std::uint64_t>(network.engine().port(last)->counters.max_queued);
  }
  return times;
}

TEST_CASE("one flow and two flows over rows of switches arrive when the formulas say") {
  const ConfigNode section = transport_goldens("hop_latency");
  const GoldenTable table(section);
  REQUIRE(table.rows() > 20);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const LinkSpec link = fabric_link(gigabits_per_second(table.integer(i, "Gbps")), 25_ns);
    const auto switches = static_cast<int>(table.integer(i, "switches"));
    const std::int64_t packets = table.integer(i, "packets");
    INFO("row " << i);
    for (const bool cut : {false, true}) {
      const Forwarding forwarding = cut ? Forwarding::CutThrough : Forwarding::StoreAndForward;
      const std::string prefix = cut ? "ct_" : "sf_";
      const auto one = send_to_last(row_of(1, switches, link, 300_ns), packets, forwarding);
      REQUIRE(one[0].picoseconds() == table.integer(i, prefix + "one_flow_ps"));
      const auto two = send_to_last(row_of(2, switches, link, 300_ns), packets, forwarding);
      REQUIRE(two[0].picoseconds() == table.integer(i, prefix + "two_flows_A_ps"));
      REQUIRE(two[1].picoseconds() == table.integer(i, prefix + "two_flows_B_ps"));
    }
  }
}

TEST_CASE("an incast without control drains when the formula says, behind the queue that it says") {
  const GoldenTable table(transport_goldens("incast_drain"));
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const LinkSpec link = fabric_link(gigabits_per_second(table.integer(i, "Gbps")), 25_ns);
    const auto senders = static_cast<int>(table.integer(i, "N"));
    INFO("row " << i);
    std::uint64_t peak = 0;
    const auto times =
        send_to_last(row_of(senders, 1, link, 500_ns), table.integer(i, "packets_per_sender"),
                     Forwarding::StoreAndForward, &peak);
    const SimTime last = *std::max_element(times.begin(), times.end());
    REQUIRE(last.picoseconds() == table.integer(i, "completion_ps"));
    // The golden figure has the packet on the line too: all arrive before one begins. Frames are
    // without preamble and gap.
    const auto packets = static_cast<std::uint64_t>(table.integer(i, "peak_packets"));
    REQUIRE(peak == packets * 4158);
  }
}

struct EngineRun {
  std::vector<PacketStart> starts;
  std::vector<SimTime> arrivals;
  std::vector<std::uint64_t> order;
};

EngineRun run_engine(const TestFabric& fabric, const Traffic& traffic,
                     const PacketOptions& options) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  EngineRun run;
  network.engine().trace(&run.starts);
  const std::vector<Woken> events = play(simulator, network, fabric, traffic);
  run.arrivals.resize(traffic.messages.size());
  for (const Woken& event : events) {
    run.arrivals[event.token] = event.time;
    run.order.push_back(event.token);
  }
  std::sort(run.starts.begin(), run.starts.end());
  return run;
}

TEST_CASE("every packet leaves every port when an ordinary simulation says") {
  for (std::uint64_t seed = 0; seed < cases(600); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "packets");
    const TestFabric fabric = random_fabric(random);
    Traffic traffic = random_traffic(fabric, random);
    for (TestMessage& message : traffic.messages) {
      message.size = Bytes(message.size.count() / 16);
    }
    PacketOptions options{.rates = RateMeaning::Line};
    options.mtu = Bytes(std::int64_t{256} << random.below(5));
    options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
    options.forwarding =
        random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
    if (random.below(2) == 0) {
      // Room for one packet and up to eight more.
      options.fabric_credits = options.mtu + 98_B +
                               Bytes(static_cast<std::int64_t>(random.below(
                                   static_cast<std::uint64_t>(options.mtu.count()) * 8)));
    }
    const EngineRun fast = run_engine(fabric, traffic, options);
    const auto paths = paths_of(fabric, traffic);
    // Connections of a node to itself have no packets: the engine does not number them.
    std::vector<std::uint32_t> number(paths.size());
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      number[i] = paths[i].empty() ? kNoIndex : next++;
    }
    NaivePacketRun naive = run_naive_packets(fabric, traffic, paths, options);
    for (PacketStart& start : naive.starts) {
      start.connection = number[start.connection];
    }
    std::sort(naive.starts.begin(), naive.starts.end());
    REQUIRE(fast.starts == naive.starts);
    REQUIRE(fast.arrivals == naive.arrivals);
    REQUIRE(run_engine(fabric, traffic, options).order == fast.order);
  }
}

}  // namespace
}  // namespace trainyard
