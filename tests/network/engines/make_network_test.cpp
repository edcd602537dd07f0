// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/engines/make_network.h"

#include "network/flow/analytical.h"
#include "network/flow/flow.h"
#include "network/flow/spray.h"
#include "network/packet/packet.h"
#include "support/fabrics.h"

namespace trainyard {
namespace {

using namespace literals;

// Whether a network of this fidelity and policy is an `Engine`.
template <typename Engine>
bool makes(Fidelity fidelity, RoutingPolicy policy) {
  const auto fabric = one_switch(3, fabric_link(gigabits_per_second(100), 1_us));
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = policy});
  const auto network = make_network(fidelity, simulator, routing);
  return dynamic_cast<const Engine*>(network.get()) != nullptr;
}

}  // namespace

TEST_CASE("each fidelity has its engine", "[network]") {
  REQUIRE(makes<AnalyticalNetwork>(Fidelity::Analytical, RoutingPolicy::EcmpHash));
  REQUIRE(makes<FlowNetwork>(Fidelity::Flow, RoutingPolicy::EcmpHash));
  REQUIRE(makes<PacketNetwork>(Fidelity::Packet, RoutingPolicy::EcmpHash));
}

TEST_CASE("messages are sprayed around engines without packets alone", "[network]") {
  REQUIRE(makes<SprayNetwork>(Fidelity::Analytical, RoutingPolicy::Spray));
  REQUIRE(makes<SprayNetwork>(Fidelity::Flow, RoutingPolicy::Spray));
  REQUIRE(makes<PacketNetwork>(Fidelity::Packet, RoutingPolicy::Spray));
}

}  // namespace trainyard
