// SPDX-License-Identifier: Apache-2.0
// `trainyard search`.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int run_search(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
