// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/routing/fabric_router.h"

#include <cstdint>
#include <vector>

#include "support/fabrics.h"
#include "topology/routing/layer.h"
#include "topology/routing/up_down_router.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("a graph without a shape is routed by fewest hops in one virtual channel") {
  const TestFabric fabric = one_switch(3, fabric_link(gigabits_per_second(100), 1_us));
  const RoutingOptions options;
  const auto router = make_fabric_router(fabric.topology, options);
  REQUIRE(router->endpoints() == fabric.hosts);
  const Chooser chooser(options, fabric.hosts[0], fabric.hosts[2], 0, 2);
  std::vector<LinkId> path;
  REQUIRE(router->append_route(fabric.hosts[0], fabric.hosts[2], chooser, path));
  REQUIRE(path.size() == 2);
  std::vector<std::uint8_t> channels;
  router->virtual_channels(path, channels);
  REQUIRE(channels == std::vector<std::uint8_t>{0, 0});
}

TEST_CASE("a fabric in tiers is routed up and down") {
  const LinkSpec link = fabric_link(gigabits_per_second(100), 1_us);
  const TestFabric fabric = clos({.leaves = 3, .hosts_per_leaf = 1, .spines = 2}, link, link);
  const RoutingOptions options{
      .policy = RoutingPolicy::Static, .seed = 1, .fabric = {.router = make_router<UpDownRouter>}};
  REQUIRE(make_fabric_router(fabric.topology, options)->diameter() == 2);
  REQUIRE_FALSE(make_fabric_router(fabric.topology, RoutingOptions{})->diameter());
}

}  // namespace
}  // namespace trainyard
