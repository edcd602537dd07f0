// SPDX-License-Identifier: Apache-2.0
// User text inside an error message, which stays one line whatever the text holds, and in lower
// case.
#pragma once

#include <string>
#include <string_view>

namespace trainyard {

// `text` with control characters written as \n, \t or \x1b.
[[nodiscard]] std::string escaped(std::string_view text);

// `text` escaped and cut to 60 bytes and "...", never within a UTF-8 character.
[[nodiscard]] std::string shortened(std::string_view text);

// `text` shortened and in double quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

// `text` with small letters for those from A to Z.
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace trainyard
