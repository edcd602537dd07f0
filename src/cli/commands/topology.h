// SPDX-License-Identifier: Apache-2.0
// The subcommand `topology`: what a cluster file describes.
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace trainyard {

// `arguments` are those after the name of the command. Returns the exit status; throws ConfigError.
int run_topology(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
