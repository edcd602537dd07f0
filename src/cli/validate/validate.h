// SPDX-License-Identifier: Apache-2.0
// trainyard validate: predictions against every measured table.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Arguments without the name of the subcommand. Returns the exit status, 1 where a recorded budget
// is exceeded; throws ConfigError.
int run_validate(std::span<const std::string> arguments, std::ostream& out);

[[nodiscard]] boost::program_options::options_description validate_options();

}  // namespace trainyard
