// SPDX-License-Identifier: Apache-2.0
// `trainyard jobs`: several training jobs on one fabric, and what each loses by the others.
#pragma once

#include <boost/program_options.hpp>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

// "0-3,8": {0, 1, 2, 3, 8}; nothing for anything else. Ranges rise; numbers are at most 999,999.
[[nodiscard]] std::vector<int> parse_servers(std::string_view text);

int run_jobs(std::span<const std::string> arguments, std::ostream& out);

[[nodiscard]] boost::program_options::options_description jobs_options();

}  // namespace trainyard
