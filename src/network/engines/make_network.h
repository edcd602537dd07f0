// SPDX-License-Identifier: Apache-2.0
// The engine of a fidelity, behind the contract of network.h.
#pragma once

#include <memory>

#include "network/contract/network.h"
#include "network/engines/network_extras.h"
#include "network/packet/packet_options.h"

namespace trainyard {

class MixedNetwork;

// The engine, sprayed over all paths where the routing says so. `simulator` and `routing` must
// outlive the network. `packet` is for the packet engine.
[[nodiscard]] std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator,
                                                    Routing& routing,
                                                    const PacketOptions& packet = roce_options(),
                                                    const NetworkExtras& extras = {});

// Returns what a network that make_network() made has learned beside its completions.
[[nodiscard]] ExtraResults extra_results(const Network& network);
// Returns the one that mixes packets and flows, or nothing.
[[nodiscard]] MixedNetwork* mixed_network(Network& network);

}  // namespace trainyard
