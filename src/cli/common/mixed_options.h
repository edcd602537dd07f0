// SPDX-License-Identifier: Apache-2.0
// --fidelity mixed and --packets: which messages run as packets, all others as flows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "network/engines/mixed_options.h"
#include "topology/graph/topology.h"

namespace trainyard {

using ChosenConnections = decltype(MixedOptions::is_chosen);

// A command has a choice of its own beside links, devices and crowds: "group=NAME" of traffic.
struct OwnChoice {
  std::string_view key;
  std::string_view expected;  // For errors: "group=NAME of the file".
  // Returns nothing if there is none of that name.
  std::function<std::optional<ChosenConnections>(const std::string& name)> find;
};

// Whether --fidelity is mixed.
[[nodiscard]] bool asks_for_mixed(const OptionReader& reader);

// Reads --packets. Throws ConfigError if it is missing, or names what is not there.
[[nodiscard]] MixedOptions read_mixed_options(const OptionReader& reader, const Topology& topology,
                                              const OwnChoice& own);

// "12 messages of 1.2 MB as packets, ...", for the notes of a result.
[[nodiscard]] std::string describe(const MixedStats& mixed, const PacketStats& packets);

}  // namespace trainyard
