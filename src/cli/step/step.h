// SPDX-License-Identifier: Apache-2.0
// `trainyard step`.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int run_step(std::span<const std::string> arguments, std::ostream& out);

[[nodiscard]] boost::program_options::options_description step_options();

}  // namespace trainyard
