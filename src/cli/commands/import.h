// SPDX-License-Identifier: Apache-2.0
// The subcommand `import`: a cluster file from what another program says about a machine.
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace trainyard {

// `arguments` are those after the name of the command. Returns the exit status; throws ConfigError.
int run_import(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
