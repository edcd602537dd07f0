// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/routing/fabric_access.h"

#include <vector>

#include "support/fabrics.h"

namespace trainyard {
namespace {

TEST_CASE("endpoints are found with their switch, also if they lost a direction") {
  const LinkSpec link = fabric_link(gigabits_per_second(100), nanoseconds(10));
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  for (int host = 0; host < 3; ++host) {
    add_host(builder, hosts);
  }
  const NodeId left = add_switch(builder, "left");
  const NodeId right = add_switch(builder, "right");
  const LinkId trunk = builder.add_duplex_link(left, right, link);
  const LinkId up = builder.add_duplex_link(hosts[1], left, link);
  const LinkId only_up = builder.add_link(hosts[0], right, link);
  const Topology topology = std::move(builder).build();
  const FabricAccess access(topology, {.first_switch = left, .switches = 2});

  REQUIRE(access.endpoints() == std::vector<NodeId>{hosts[1], hosts[0]});
  REQUIRE(access.trunks() == std::vector<LinkId>{trunk, LinkId(trunk.value() + 1)});
  REQUIRE(access.up(hosts[1])->at == 0);
  REQUIRE(access.up(hosts[1])->link == up);
  REQUIRE(access.down(hosts[1])->link == LinkId(up.value() + 1));
  REQUIRE(access.up(hosts[0])->at == 1);
  REQUIRE(access.up(hosts[0])->link == only_up);
  REQUIRE(!access.down(hosts[0]));
  REQUIRE(!access.up(hosts[2]));
  REQUIRE(access.up(right)->at == 1);
  REQUIRE(!access.up(right)->link);
  REQUIRE(access.ups_of(0).size() == 1);
  REQUIRE(access.downs_of(1).empty());
  REQUIRE(!access.number(hosts[0]));
  REQUIRE(access.number(right) == 1);
}

}  // namespace
}  // namespace trainyard
