// SPDX-License-Identifier: Apache-2.0
// Ports, paths and windows of the packet engine, without a simulator.
#include "support/catch.h"

#include "network/packet/packet_engine.h"

#include <array>

#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kEngineLink = fabric_link(gigabits_per_second(100), 1_us);
const PacketOptions kLine = line_options();

TEST_CASE("a packet takes its bytes on the line on every link, and the latency between") {
  const TestFabric fabric = one_switch(2, kEngineLink);
  PacketEngine engine(fabric.topology, kLine);
  const std::array path{LinkId(0), LinkId(3)};
  const std::uint32_t connection = engine.add_connection(path);
  engine.send(connection, {.time = 0, .size = 4096});
  const auto completions = run_windows(engine);
  REQUIRE(completions.size() == 1);
  // 4096 + 82 bytes at 100 Gb/s are 334,240 ps.
  REQUIRE(completions[0].time == 2 * 334'240 + 2'000'000);
  REQUIRE(engine.counts().packet_hops == 2);
  REQUIRE(engine.counts().messages == 1);
}

TEST_CASE("windows are as long as a header and the shortest link in use") {
  const TestFabric fabric =
      uneven_switch({kEngineLink, fabric_link(gigabits_per_second(100), 500_ns), kEngineLink});
  PacketEngine engine(fabric.topology, kLine);
  REQUIRE(engine.window() == kNeverTime);
  engine.add_connection(std::array{LinkId(0), LinkId(5)});
  REQUIRE(engine.window() == 1'000'000 + 72 * 80);
  engine.add_connection(std::array{LinkId(0), LinkId(3)});
  REQUIRE(engine.window() == 500'000 + 84 * 80);
}

TEST_CASE("nothing is due where nothing was sent, and long after the last packet") {
  const TestFabric fabric = one_switch(2, kEngineLink);
  PacketEngine engine(fabric.topology, kLine);
  REQUIRE(engine.next_border() == kNeverTime);
  const std::uint32_t connection = engine.add_connection(std::array{LinkId(0), LinkId(3)});
  REQUIRE(engine.next_border() == kNeverTime);
  engine.send(connection, {.time = 5'000'000'000'000, .size = 1});
  const auto completions = run_windows(engine);
  REQUIRE(completions.size() == 1);
  REQUIRE(engine.counts().windows <= 3);  // Five seconds without any.
}

TEST_CASE("links without use have no port, and the last of a message is counted once it has left") {
  const TestFabric fabric = one_switch(4, kEngineLink);
  PacketEngine engine(fabric.topology, kLine);
  const std::uint32_t connection = engine.add_connection(std::array{LinkId(0), LinkId(3)});
  engine.send(connection, {.time = 0, .size = 10'000});
  run_windows(engine);
  REQUIRE(engine.port(LinkId(1)) == nullptr);
  REQUIRE(engine.port(LinkId(0))->counters.packets == 3);
  REQUIRE(engine.port(LinkId(0))->counters.bytes == 10'000 + 3 * 82);
  const auto payload = engine.payload_by_link();
  REQUIRE(payload.size() == 2);
  REQUIRE(payload[1].link == LinkId(3));
  REQUIRE(payload[1].bytes == 10'000_B);
}

TEST_CASE("options that make no sense are the user's mistake") {
  const TestFabric fabric = one_switch(2, kEngineLink);
  REQUIRE_THROWS_WITH(PacketEngine(fabric.topology, {.mtu = 0_B}),
                      "packet engine: expected an MTU from 1 to 65000 B, found 0 B");
  REQUIRE_THROWS_AS(PacketEngine(fabric.topology, {.mtu = 1_MiB}), ConfigError);
}

}  // namespace
}  // namespace trainyard
