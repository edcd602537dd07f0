// SPDX-License-Identifier: Apache-2.0
// `trainyard explain collective`.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int explain_collective(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
