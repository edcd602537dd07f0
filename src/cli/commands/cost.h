// SPDX-License-Identifier: Apache-2.0
// `trainyard cost`.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int run_cost(std::span<const std::string> arguments, std::ostream& out);

[[nodiscard]] boost::program_options::options_description cost_options();

}  // namespace trainyard
