// SPDX-License-Identifier: Apache-2.0
#include "support/damage.h"

#include <cstdint>

namespace trainyard {

std::string damaged(std::string text, std::string_view likely, std::mt19937_64& engine) {
  const auto edits = 1 + engine() % 4;
  for (std::uint64_t edit = 0; edit < edits && !text.empty(); ++edit) {
    const std::size_t at = engine() % text.size();
    const char letter =
        engine() % 4 == 0 ? static_cast<char>(engine() % 256) : likely[engine() % likely.size()];
    switch (engine() % 4) {
      case 0:
        text[at] = letter;
        break;
      case 1:
        text.insert(at, 1, letter);
        break;
      case 2:
        text.erase(at, 1 + engine() % 8);
        break;
      default:
        text.insert(at, text.substr(engine() % text.size(), 1 + engine() % 30));
        break;
    }
  }
  return text;
}

}  // namespace trainyard
