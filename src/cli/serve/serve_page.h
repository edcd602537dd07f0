// SPDX-License-Identifier: Apache-2.0
// The page of `trainyard serve`, which is built into the program: src/cli/serve has its parts.
#pragma once

#include <string_view>

namespace trainyard {

struct ServePage {
  std::string_view body;
  std::string_view style;
  std::string_view script;
};
[[nodiscard]] const ServePage& serve_page();

}  // namespace trainyard
