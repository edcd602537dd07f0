// SPDX-License-Identifier: Apache-2.0
// Text of others inside an error message, which stays one line whatever it holds.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::calibrate {

// Control characters as spaces, and at most `most` bytes with "..." for the rest.
[[nodiscard]] inline std::string one_line(std::string_view text, std::size_t max = 300) {
  std::string line;
  for (const char letter : text.substr(0, max)) {
    line.push_back(static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F ? ' ' : letter);
  }
  while (!line.empty() && line.back() == ' ') {
    line.pop_back();
  }
  return text.size() > max ? line + "..." : line;
}

[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  return "\"" + one_line(text, 60) + "\"";
}

}  // namespace trainyard::calibrate
