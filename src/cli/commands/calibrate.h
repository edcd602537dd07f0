// SPDX-License-Identifier: Apache-2.0
// `trainyard calibrate`: a profile of NCCL that is fitted to measurements of one machine
// (docs/commands/calibrate.md).
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status; throws ConfigError for mistakes of the user.
int run_calibrate(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
