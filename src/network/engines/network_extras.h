// SPDX-License-Identifier: Apache-2.0
// A run may ask more of its network than an engine: packets beside flows, and how long messages
// took. These are the words of that, and of what it learns.
#pragma once

#include <functional>
#include <optional>

#include "network/engines/message_times.h"
#include "network/engines/mixed_options.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct NetworkExtras {
  // Chooses what runs as packets on a topology, where all else runs as flows; for Fidelity::Packet.
  // Throws ConfigError for what is not there. Nothing: everything is of one engine.
  std::function<MixedOptions(const Topology&)> mixed = {};
  bool times_messages = false;
};

struct ExtraResults {
  std::optional<MixedStats> mixed = {};
  std::optional<MessageTimes> messages = {};
};

}  // namespace trainyard
