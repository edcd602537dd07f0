// SPDX-License-Identifier: Apache-2.0
// The ends of a connection: ACKs, CNPs, pacing, and what DCQCN makes of them.
#include "support/catch.h"

#include <algorithm>
#include <array>

#include "network/packet/packet.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kTransportLink = fabric_link(gigabits_per_second(100), 1_us);

PacketOptions long_line_options() {
  PacketOptions options = roce_options();
  options.rates = RateMeaning::Line;
  return options;
}

TEST_CASE("the last packet of a message is answered, and every sixteenth in between") {
  const TestFabric fabric = one_switch(2, kTransportLink);
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, long_line_options());
  Recorder done(simulator);
  const ConnectionId connection =
      network.connect({.source = fabric.hosts[0], .target = fabric.hosts[1]});
  network.send(connection, 4096_B * 40, done, 0);
  network.send(connection, 1_B, done, 1);
  simulator.run();
  REQUIRE(network.engine().counts().acks == 2 + 1 + 1);
  // They go back by the links back: 86 B each.
  REQUIRE(network.engine().port(LinkId(2))->counters.bytes == 4 * 86);
  REQUIRE(network.engine().port(LinkId(1))->counters.bytes == 4 * 86);
  REQUIRE(network.engine().counts().packet_hops == 2 * 41);
  REQUIRE(network.engine().counts().cnps == 0);
}

// Hosts 0 ... flows-1 send to the last one without end; what is to be seen at `time`.
struct SharedRun {
  std::vector<double> rates;
  std::vector<double> sent;  // Bytes by flow.
  std::uint64_t cnps = 0;
  std::uint64_t pauses = 0;
  std::int64_t max_queued = 0;
  double busy = 0.0;  // Share of the line.
};

SharedRun share(std::uint32_t flows, const PacketOptions& options, SimTime time) {
  const TestFabric fabric = one_switch(static_cast<int>(flows) + 1, kTransportLink);
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, options);
  Recorder done(simulator);
  for (std::uint32_t i = 0; i < flows; ++i) {
    network.send(network.connect({.source = fabric.hosts[i], .target = fabric.hosts[flows]}), 1_GiB,
                 done, i);
  }
  simulator.run_until(time);
  SharedRun run;
  for (std::uint32_t i = 0; i < flows; ++i) {
    run.rates.push_back(network.engine().rate(i));
    run.sent.push_back(static_cast<double>(network.engine().port(LinkId(2 * i))->counters.bytes));
  }
  run.cnps = network.engine().counts().cnps;
  const Port& last = *network.engine().port(LinkId(2 * flows + 1));
  run.max_queued = last.counters.max_queued;
  run.busy = static_cast<double>(last.counters.bytes) * 8 / time.seconds() / 100e9;
  for (std::uint32_t i = 0; i < flows; ++i) {
    run.pauses += network.engine().port(LinkId(2 * i))->counters.pauses_received;
  }
  return run;
}

TEST_CASE("marks make CNPs, CNPs cut rates, and the link stays busy") {
  for (const CongestionControl control :
       {CongestionControl::DcqcnNic, CongestionControl::DcqcnPaper}) {
    for (const EcnPreset ecn : {EcnPreset::Hpcc, EcnPreset::Dcqcn}) {
      PacketOptions options = long_line_options();
      options.control = control;
      options.ecn = ecn;
      const SharedRun run = share(2, options, 50_ms);
      REQUIRE(run.cnps > 20);
      for (const double rate : run.rates) {
        REQUIRE(rate < 100e9);
        REQUIRE(rate > 30e9);
      }
      REQUIRE(run.busy > 0.95);
    }
  }
}

// Raj Jain's index of fairness: 1 where all are equal.
double fairness(const std::vector<double>& values) {
  double sum = 0.0;
  double squares = 0.0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return sum * sum / squares / static_cast<double>(values.size());
}

TEST_CASE("two, four and sixteen flows come to equal shares") {
  for (const std::uint32_t flows : {2U, 4U, 16U}) {
    INFO(flows);
    const SharedRun run = share(flows, long_line_options(), 60_ms);
    REQUIRE(fairness(run.sent) > 0.98);
    REQUIRE(run.busy > 0.95);
  }
}

TEST_CASE("with control fewer pauses are sent than without") {
  PacketOptions options = long_line_options();
  options.buffer = 4_MiB;
  options.ecn = EcnPreset::Dcqcn;  // Marks long before a group is full.
  const SharedRun with = share(8, options, 20_ms);
  options.control = CongestionControl::None;
  options.ecn = EcnPreset::Off;
  const SharedRun without = share(8, options, 20_ms);
  REQUIRE(without.pauses > 10 * (with.pauses + 1));
  REQUIRE(without.cnps == 0);
}

TEST_CASE("what is slower than the first link paces a connection from the start") {
  // A host on a link of 400 Gb/s inside the server, its adapter at 100: nothing piles up there.
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId hub = add_switch(builder, "switch");
  for (int i = 0; i < 2; ++i) {
    const NodeId host = add_host(builder, hosts);
    const NodeId nic = builder.add_node({.kind = NodeKind::Nic,
                                         .name = "nic " + std::to_string(i),
                                         .server = builder.node(host).server});
    builder.add_duplex_link(
        host, nic,
        {.kind = LinkKind::Pcie, .bandwidth = gigabits_per_second(400), .latency = 200_ns});
    builder.add_duplex_link(nic, hub, kTransportLink);
  }
  const Topology topology = std::move(builder).build();
  Simulator simulator;
  Routing routing(topology, {});
  PacketNetwork network(simulator, routing, long_line_options());
  Recorder done(simulator);
  network.send(network.connect({.source = hosts[0], .target = hosts[1]}), 4096_B * 1000, done, 0);
  simulator.run();
  const Port& nic = *network.engine().port(LinkId(2));
  REQUIRE(nic.counters.packets == 1000);
  REQUIRE(nic.counters.max_queued <= 2 * 4200);
}

}  // namespace
}  // namespace trainyard
