// SPDX-License-Identifier: Apache-2.0
// trainyard check: what is wrong with configuration files, one line for each finding.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Arguments without the name of the subcommand. Returns 0, or 1 if something is wrong; throws
// ConfigError for what cannot be read.
int run_check(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
