// SPDX-License-Identifier: Apache-2.0
// `trainyard explain step`.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int explain_step(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
