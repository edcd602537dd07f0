// SPDX-License-Identifier: Apache-2.0
// `trainyard compare`: what differs between two results, two files, or a step and its trace.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

// Returns the exit status. Throws ConfigError.
int run_compare(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
