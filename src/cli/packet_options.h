// SPDX-License-Identifier: Apache-2.0
// --control, --ecn, --pfc, --mtu: what the packet engine is told beside the cluster.
#pragma once

#include <boost/program_options.hpp>
#include <string>

#include "cli/options.h"
#include "network/network.h"
#include "network/packet_options.h"

namespace trainyard {

void add_packet_options(boost::program_options::options_description& options);

// roce_options() where nothing is given. Refuses all of them at another fidelity.
[[nodiscard]] PacketOptions read_packet_options(const OptionReader& reader, Fidelity fidelity);

// "dcqcn-nic, ECN hpcc, PFC on, MTU 4096", for the notes of a result.
[[nodiscard]] std::string describe(const PacketOptions& packet);

}  // namespace trainyard
