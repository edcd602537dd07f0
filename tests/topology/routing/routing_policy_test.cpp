// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/routing/routing_policy.h"

namespace trainyard {
namespace {

TEST_CASE("each policy has a row with its name and its traits") {
  REQUIRE(to_string(RoutingPolicy::EcmpHash) == "ecmp");
  REQUIRE(to_string(RoutingPolicy::Spray) == "spray");
  for (const PolicyTraits& row : kRoutingPolicies) {
    INFO(row.name);
    REQUIRE(row.switches_choose() == (row.policy == RoutingPolicy::Adaptive));
    REQUIRE(row.sprays == (row.policy == RoutingPolicy::Spray));
    REQUIRE(row.spreads() == (row.sprays || row.switches_choose()));
    REQUIRE(row.keeps_shortest_path() ==
            (row.policy == RoutingPolicy::EcmpHash || row.policy == RoutingPolicy::Static));
    // What goes by an index draws nothing.
    REQUIRE(row.seedless.empty() == (row.choice != LinkChoice::Index));
  }
}

}  // namespace
}  // namespace trainyard
