// SPDX-License-Identifier: Apache-2.0
// What a run may ask of its network beside an engine: packets beside flows, and how long messages
// took; and what it learns.
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
