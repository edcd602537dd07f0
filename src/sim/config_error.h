// SPDX-License-Identifier: Apache-2.0
// The user's mistake: a file, option or value that cannot be used. Only main catches it; it prints
// what() as one line and exits with 2.
#pragma once

#include <stdexcept>

namespace trainyard {

class ConfigError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace trainyard
