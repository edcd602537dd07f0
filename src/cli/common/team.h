// SPDX-License-Identifier: Apache-2.0
// Commands that several processes run together: one packet network, whose fabric they share out, or
// one search, whose plans they do.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "cli/common/option_table.h"
#include "network/packet_parts/packet_team.h"

namespace trainyard {

// Returns whether several processes can run the command of this name.
[[nodiscard]] bool is_for_team(std::string_view command);

// The same as run_command(), in each process of the team: all do the same but for packets or plans,
// and rank 0 alone writes, to `out` and to files. Throws ConfigError, in all or in one of them.
int run_command_in(PacketTeam& team, const Command& command, std::span<const std::string> arguments,
                   std::ostream& out);

}  // namespace trainyard
