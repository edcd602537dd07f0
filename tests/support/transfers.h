// SPDX-License-Identifier: Apache-2.0
// Runs of `transfer` in tests.
#pragma once

#include "support/catch.h"

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"

namespace trainyard {

// Options for the host memories of two servers.
[[nodiscard]] inline std::vector<std::string> between_hosts(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"--cluster", "azure-nd-a100-v4", "--from", "server0/memory0",
                                     "--to",      "server1/memory0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

[[nodiscard]] inline std::string printed_between_hosts(const std::vector<std::string>& more) {
  std::ostringstream out;
  REQUIRE(run_command(transfer_command(), between_hosts(more), out) == 0);
  return out.str();
}

[[nodiscard]] inline std::string refused_between_hosts(const std::vector<std::string>& more) {
  std::ostringstream out;
  try {
    (void)run_command(transfer_command(), between_hosts(more), out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace trainyard
