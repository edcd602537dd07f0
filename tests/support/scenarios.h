// SPDX-License-Identifier: Apache-2.0
// Random fabrics, traffic, parameters and faults together, in all combinations that the packet
// engine takes.
#pragma once

#include <cstdint>

#include "network/packet/packet_options.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "topology/routing/routing.h"

namespace trainyard {

// Each part has a stream of random numbers of its own, so that another part leaves the others as
// they are for every seed.
struct Scenario {
  TestFabric fabric;
  Traffic traffic{};
  RoutingOptions routing{};
  PacketOptions packet{};
};

[[nodiscard]] Scenario scenario_of(std::uint64_t seed);

}  // namespace trainyard
