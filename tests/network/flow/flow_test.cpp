// SPDX-License-Identifier: Apache-2.0
// Sharing of links by hand-made cases, then random traffic against the naive fluid.
#include "support/catch.h"

#include "network/flow/flow.h"

#include <cstdlib>

#include "support/messages.h"
#include "support/naive_fluid.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

// 100 Gb/s: 12,500 bytes take 1 us. Paths across the switch take 2 us.
const LinkSpec kFlowLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr Bytes kFlowMicrosecond{12'500};

std::vector<SimTime> arrivals(const TestFabric& fabric, const Traffic& traffic) {
  return run_traffic(fabric, traffic, Fidelity::Flow).arrivals;
}

TEST_CASE("two flows into one host get half each, and the longer one all when the other has left") {
  const TestFabric fabric = one_switch(3, kFlowLink);
  // Both at half rate until 6 us; then 2 us worth of bytes are left of the second.
  REQUIRE(arrivals(fabric, {.connections = {{.source = 0, .target = 2}, {.source = 1, .target = 2}},
                            .messages = {{.connection = 0, .size = kFlowMicrosecond * 3},
                                         {.connection = 1, .size = kFlowMicrosecond * 5}}}) ==
          std::vector<SimTime>{8_us, 10_us});
}

TEST_CASE("a flow that joins takes its share from then on") {
  const TestFabric fabric = one_switch(3, kFlowLink);
  // Alone for 4 us, 2 us left; shared until the first ends at 8 us with 2 us of the second done.
  REQUIRE(arrivals(fabric,
                   {.connections = {{.source = 0, .target = 2}, {.source = 1, .target = 2}},
                    .messages = {{.connection = 0, .time = SimTime(), .size = kFlowMicrosecond * 6},
                                 {.connection = 1, .time = 4_us, .size = kFlowMicrosecond * 5}}}) ==
          std::vector<SimTime>{10_us, 13_us});
}

TEST_CASE("flows in different directions and on different links do not share") {
  const TestFabric fabric = one_switch(4, kFlowLink);
  REQUIRE(arrivals(fabric, {.connections = {{.source = 0, .target = 1},
                                            {.source = 1, .target = 0},
                                            {.source = 2, .target = 3}},
                            .messages = {{.connection = 0, .size = kFlowMicrosecond * 3},
                                         {.connection = 1, .size = kFlowMicrosecond * 3},
                                         {.connection = 2, .size = kFlowMicrosecond * 3}}}) ==
          std::vector<SimTime>{5_us, 5_us, 5_us});
}

TEST_CASE("what a flow cannot use because of another link goes to its neighbours") {
  // Switches 0 - 1 - 2 with a trunk of 100 Gb/s, then one of 20 Gb/s; hosts with 1 Tb/s.
  const LinkSpec host = fabric_link(gigabits_per_second(1000), SimTime());
  const TestFabric fabric = switch_row(host, {fabric_link(gigabits_per_second(100), SimTime()),
                                              fabric_link(gigabits_per_second(20), SimTime())});
  // 0 -> 2 and 1 -> 2 share 20 Gb/s, 10 each; 0 -> 1 gets the other 90 Gb/s of the first trunk.
  REQUIRE(arrivals(fabric, {.connections = {{.source = 0, .target = 2},
                                            {.source = 1, .target = 2},
                                            {.source = 0, .target = 1}},
                            .messages = {{.connection = 0, .size = Bytes(12'500)},
                                         {.connection = 1, .size = Bytes(12'500)},
                                         {.connection = 2, .size = Bytes(112'500)}}}) ==
          std::vector<SimTime>{10_us, 10_us, 10_us});
}

TEST_CASE("a connection with a queue has one flow, several connections have several") {
  const TestFabric fabric = one_switch(3, kFlowLink);
  const TestConnection there{.source = 0, .target = 2};
  const TestConnection other{.source = 1, .target = 2};
  // Connection 0 carries its two messages one at a time and gets a quarter throughout.
  REQUIRE(arrivals(fabric, {.connections = {there, there, other, other},
                            .messages = {{.connection = 0, .size = kFlowMicrosecond},
                                         {.connection = 0, .size = kFlowMicrosecond},
                                         {.connection = 1, .size = kFlowMicrosecond * 2},
                                         {.connection = 2, .size = kFlowMicrosecond * 2},
                                         {.connection = 3, .size = kFlowMicrosecond * 2}}}) ==
          std::vector<SimTime>{6_us, 10_us, 10_us, 10_us, 10_us});
}

TEST_CASE("equal completion times: who left first, whatever the order of send") {
  // Host 0 is one switch further away from host 2 than host 1 is.
  const TestFabric fabric = switch_row(kFlowLink, {kFlowLink, kFlowLink});
  const Traffic traffic{.connections = {{.source = 1, .target = 2}, {.source = 0, .target = 1}},
                        .messages = {{.connection = 0, .size = kFlowMicrosecond * 4},
                                     {.connection = 1, .size = kFlowMicrosecond * 4}}};
  const MessagesRun same = run_traffic(fabric, traffic, Fidelity::Flow);
  REQUIRE(same.arrivals == std::vector<SimTime>{7_us, 7_us});
  REQUIRE(same.order == std::vector<std::uint64_t>{0, 1});

  const Traffic far_first{.connections = {{.source = 2, .target = 1}, {.source = 0, .target = 2}},
                          .messages = {{.connection = 0, .size = kFlowMicrosecond * 4},
                                       {.connection = 1, .size = kFlowMicrosecond * 3}}};
  const MessagesRun run = run_traffic(fabric, far_first, Fidelity::Flow);
  REQUIRE(run.arrivals == std::vector<SimTime>{7_us, 7_us});
  REQUIRE(run.order == std::vector<std::uint64_t>{1, 0});
}

TEST_CASE("all that begins at one instant is solved once, and equal paths are one class") {
  const TestFabric fabric = one_switch(9, kFlowLink);
  Traffic traffic;
  for (std::uint32_t source = 0; source < 8; ++source) {
    for (int copy = 0; copy < 2; ++copy) {
      traffic.connections.push_back({.source = source, .target = 8});
      traffic.messages.push_back({.connection = 2 * source + static_cast<std::uint32_t>(copy),
                                  .time = SimTime(),
                                  .size = kFlowMicrosecond});
    }
  }
  const MessagesRun run = run_traffic(fabric, traffic, Fidelity::Flow);
  REQUIRE(run.stats.path_classes == 8);
  REQUIRE(run.stats.connections == 16);
  REQUIRE(run.stats.solves == 2);  // All begin; all end.
  REQUIRE(run.arrivals == std::vector<SimTime>(16, 18_us));
}

TEST_CASE("a gibibyte at the greatest rate and a byte at the least stay exact") {
  const TestFabric fast = one_switch(2, fabric_link(kMaxBandwidth, SimTime()));
  const TestFabric slow = one_switch(2, fabric_link(Bandwidth(1), SimTime()));
  const TestConnection there{.source = 0, .target = 1};
  REQUIRE(arrivals(fast, {.connections = {there},
                          .messages = {{.connection = 0, .size = 1024_GiB}}})[0] ==
          transfer_time(1024_GiB, kMaxBandwidth));
  REQUIRE(arrivals(slow, {.connections = {there},
                          .messages = {{.connection = 0, .size = 1000_B}}})[0] == seconds(8000));
}

// Arrival of each message, in the order of the traffic.
std::vector<SimTime> naive_arrivals(const TestFabric& fabric, const Traffic& traffic) {
  NaiveFluid fluid(fabric.topology);
  std::vector<std::vector<std::size_t>> sent(traffic.connections.size());
  std::vector<std::size_t> arrived(traffic.connections.size(), 0);
  std::vector<SimTime> arrivals(traffic.messages.size());
  for (std::vector<LinkId>& path : paths_of(fabric, traffic)) {
    fluid.connect(std::move(path));
  }
  const auto take_until = [&](SimTime limit) {
    while (const auto arrival = fluid.next_arrival(limit)) {
      const std::uint32_t connection = arrival->connection;
      arrivals[sent[connection][arrived[connection]++]] = arrival->time;
    }
  };
  for (std::size_t i = 0; i < traffic.messages.size(); ++i) {
    const TestMessage& message = traffic.messages[i];
    take_until(message.time);
    sent[message.connection].push_back(i);
    fluid.send(message.connection, message.size);
  }
  take_until(SimTime::max());
  return arrivals;
}

TEST_CASE("random traffic arrives when a naive fluid simulation says") {
  constexpr double kPicoseconds = 2.0;
  constexpr double kRelative = 1e-12;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random(seed, "flow test");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = random_traffic(fabric, random);
    const MessagesRun run = run_traffic(fabric, traffic, Fidelity::Flow);
    const std::vector<SimTime> expected = naive_arrivals(fabric, traffic);
    Bytes sent;
    for (std::size_t i = 0; i < traffic.messages.size(); ++i) {
      INFO("seed=" << seed << " message " << i);
      sent += traffic.messages[i].size;
      const auto difference = static_cast<double>((run.arrivals[i] - expected[i]).picoseconds());
      const auto whole = static_cast<double>(expected[i].picoseconds());
      REQUIRE(std::abs(difference) <= kPicoseconds + kRelative * whole);
    }
    INFO("seed=" << seed);
    REQUIRE(run.stats.messages == traffic.messages.size());
    REQUIRE(run.stats.bytes == sent);
  }
}

}  // namespace
}  // namespace trainyard
