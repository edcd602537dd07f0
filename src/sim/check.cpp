// SPDX-License-Identifier: Apache-2.0
// The end of a failed CHECK.
#include "sim/check.h"

#include <cstdio>
#include <cstdlib>

#include "sim/crash_advice.h"

namespace trainyard {

std::string_view crash_advice() {
  return "trainyard: this is a mistake of Trainyard, not yours: please send what follows, the "
         "command "
         "line, its files and what trainyard --version says to the project, as CONTRIBUTING.md "
         "describes\n";
}

void check_failed(const char* file, int line, const char* condition, std::string_view message) {
  std::fprintf(stderr, "%s%s:%d: check failed: %s: %.*s\n", crash_advice().data(), file, line,
               condition, static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace trainyard
