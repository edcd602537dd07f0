// SPDX-License-Identifier: Apache-2.0
// `trainyard explain`: why a step or a collective takes as long as it does.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int run_explain(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
