// SPDX-License-Identifier: Apache-2.0
// Random damage to a text, for readers that must take it or refuse it in one line.
#pragma once

#include <random>
#include <string>
#include <string_view>

namespace trainyard {

// One to four bytes replaced, inserted, deleted or copied from elsewhere in the text. Three
// quarters of the new bytes are from `likely`.
[[nodiscard]] std::string damaged(std::string text, std::string_view likely,
                                  std::mt19937_64& engine);

}  // namespace trainyard
