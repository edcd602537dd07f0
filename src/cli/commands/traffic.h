// SPDX-License-Identifier: Apache-2.0
// `trainyard traffic`.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status: 1 if a flow was never complete. Throws ConfigError.
int run_traffic_command(std::span<const std::string> arguments, std::ostream& out);

[[nodiscard]] boost::program_options::options_description traffic_options();

}  // namespace trainyard
