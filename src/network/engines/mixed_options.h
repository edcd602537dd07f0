// SPDX-License-Identifier: Apache-2.0
// Options say which messages run as packets where the rest runs as flows (mixed.h); stats, which
// did.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "network/contract/network.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

// A connection that is made.
struct NewConnection {
  const ConnectionSpec& spec;
  std::span<const LinkId> path;
  // Kind of calls that it is for, such as "data", where a step says so (graph_network.h).
  std::string_view purpose = {};
};

struct MixedOptions {
  // Whether the connection runs as packets whatever else happens.
  std::function<bool(const NewConnection&)> is_chosen = {};
  // A message runs as packets, too, where at the instant at which it is sent a link of its path has
  // so many connections with messages under way, itself included. 0: none does.
  std::uint32_t crowd = 0;
  // An estimate: about a round trip through a loaded fabric, after which controls react.
  SimTime interval = microseconds(20);
};

// Counts messages by the fidelity in which they ran, and what the two told each other.
struct MixedStats {
  std::uint64_t flow_messages = 0;
  Bytes flow_bytes;
  std::uint64_t packet_messages = 0;
  Bytes packet_bytes;
  std::uint64_t exchanges = 0;     // Instants at which limits of guests were looked at.
  std::uint64_t port_changes = 0;  // Rates that flows gave to ports.
  // Most flows that shared a link with packets at an exchange, or when a message of packets began.
  std::uint32_t max_flows_met = 0;
  SimTime interval = {};  // From one exchange to the next.
};

}  // namespace trainyard
