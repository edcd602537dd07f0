// SPDX-License-Identifier: Apache-2.0
// --fidelity mixed and --packets: which messages run as packets, all others as flows; and
// --message-times.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "network/engines/network_extras.h"

namespace trainyard {

using ChosenConnections = decltype(MixedOptions::is_chosen);

// A command may have a choice of its own beside links, devices and crowds: "group=NAME" of traffic.
struct OwnChoice {
  std::string_view key = {};
  std::string_view expected = {};  // For errors: "group=NAME of the file".
  // Returns nothing if there is none of that name. It may be called whenever a network is made.
  std::function<std::optional<ChosenConnections>(const std::string& name)> find = {};
};

// Whether --fidelity is mixed.
[[nodiscard]] bool asks_for_mixed(const OptionReader& reader);

// --packets; `help` says what it may choose.
[[nodiscard]] Option packets_option(std::string_view help);
// --message-times, of commands whose fidelity has messages that contend.
[[nodiscard]] Option message_times_option(std::string_view needs);

// Reads --packets and --message-times, of commands that have them. What --packets names is looked
// for when a network is made. Throws ConfigError.
[[nodiscard]] NetworkExtras read_network_extras(const OptionReader& reader, OwnChoice own = {});

// The notes of a result say what the extras of a run found: "mixed: 12 messages ...", "messages:
// ...".
[[nodiscard]] std::vector<std::string> extra_notes(const ExtraResults& extras,
                                                   const PacketStats& packets);
[[nodiscard]] std::string describe(const MixedStats& mixed, const PacketStats& packets);

}  // namespace trainyard
