// SPDX-License-Identifier: Apache-2.0
// trainyard collective: the time of a collective over a range of message sizes.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Arguments without the name of the subcommand. Returns the exit status; throws ConfigError.
int run_collective_command(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
