// SPDX-License-Identifier: Apache-2.0
// What paths of the packet engine are made of, before anything is sent.
#include "support/catch.h"

#include "network/packet/packet_fabric.h"

#include <array>
#include <vector>

#include "support/fabrics.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kFabricLink = fabric_link(gigabits_per_second(100), 1_us);

TEST_CASE("a path is the ports of its links, and links in use have one port each") {
  const TestFabric network = one_switch(3, kFabricLink);
  PacketFabric fabric(network.topology, line_options());
  // Links from hosts are even.
  const Picoseconds min = fabric.add_path(std::array{LinkId(0), LinkId(3)});
  REQUIRE(min == 1'000'000 + 72 * 80);
  static_cast<void>(fabric.add_path(std::array{LinkId(4), LinkId(3)}));
  REQUIRE(fabric.positions() == std::vector<std::uint32_t>{0, 1, 2, 1});
  REQUIRE(fabric.ports().size() == 3);
  REQUIRE(fabric.ports()[2].link == 4);
  REQUIRE(fabric.port_index(LinkId(3)) == 1);
  REQUIRE(fabric.port_index(LinkId(1)) == kNoIndex);
}

TEST_CASE("where something goes back, links have their opposites, and packets their ingress") {
  const TestFabric network = one_switch(3, kFabricLink);
  PacketOptions options = roce_options();
  options.rates = RateMeaning::Line;
  PacketFabric fabric(network.topology, options);
  const std::array path{LinkId(4), LinkId(3)};
  static_cast<void>(fabric.add_path(path));
  static_cast<void>(fabric.add_way_back(path));
  const auto link = [&](std::size_t position) {
    return fabric.ports()[fabric.positions()[position]].link;
  };
  REQUIRE(link(2) == 2);
  REQUIRE(link(3) == 5);
  const Port& last = fabric.ports()[fabric.positions()[1]];
  REQUIRE(fabric.ports()[last.opposite].link == 2);
  // The third host's packets come into the switch by its third port.
  REQUIRE(fabric.entries()[1] == 2);
  REQUIRE(fabric.entries()[3] == 1);
  REQUIRE(fabric.switches().size() == 1);
  REQUIRE(fabric.is_of_fabric(network.topology.link(LinkId(3))));
  REQUIRE(!fabric.is_of_fabric(network.topology.link(LinkId(4))));
}

TEST_CASE("what an idle path takes, stored and cut through") {
  const TestFabric network = one_switch(2, kFabricLink);
  PacketOptions options = line_options();
  PacketFabric stored(network.topology, options);
  const std::array path{LinkId(0), LinkId(3)};
  static_cast<void>(stored.add_path(path));
  const std::int64_t wire = stored.sizes().full;
  REQUIRE(wire == 4096 + 82);
  REQUIRE(stored.idle_time(0, 2, wire) == 2 * wire * 80 + 2'000'000);
  REQUIRE(stored.stored_time(0, 2, wire) == stored.idle_time(0, 2, wire));
  options.forwarding = Forwarding::CutThrough;
  PacketFabric cut(network.topology, options);
  static_cast<void>(cut.add_path(path));
  REQUIRE(cut.idle_time(0, 2, wire) == (wire + kCutThroughBytes) * 80 + 2'000'000);
  REQUIRE(cut.stored_time(0, 2, wire) == stored.stored_time(0, 2, wire));
}

TEST_CASE("a sender has the rate of its own stage of the path") {
  const TestFabric network =
      uneven_switch({kFabricLink, fabric_link(gigabits_per_second(25), 1_us)});
  PacketFabric fabric(network.topology, line_options());
  static_cast<void>(fabric.add_path(std::array{LinkId(0), LinkId(3)}));
  REQUIRE(fabric.own_rate(std::array{LinkId(0), LinkId(3)}) == 100'000'000'000);
  static_cast<void>(fabric.add_path(std::array{LinkId(2), LinkId(1)}));
  REQUIRE(fabric.own_rate(std::array{LinkId(2), LinkId(1)}) == 25'000'000'000);
}

}  // namespace
}  // namespace trainyard
