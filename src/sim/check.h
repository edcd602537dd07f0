// SPDX-License-Identifier: Apache-2.0
// CHECK and DCHECK: our own mistakes. They print the place and stop; they are never used for user
// input, which gets a ConfigError (sim/config_error.h).
#pragma once

#include <string_view>

namespace trainyard {

// Prints "file:line: check failed: condition: message" and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message);

}  // namespace trainyard

#define CHECK(condition, message)                                           \
  do {                                                                      \
    if (!(condition)) [[unlikely]] {                                        \
      ::trainyard::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                       \
  } while (false)

#ifdef NDEBUG
#define DCHECK(condition, message) \
  do {                             \
  } while (false)
#else
#define DCHECK(condition, message) CHECK(condition, message)
#endif
