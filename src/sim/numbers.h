// SPDX-License-Identifier: Apache-2.0
// Reads numbers from text, strictly.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace trainyard {

// The number that the whole text is; nothing for anything else, blanks and a plus among it.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

// The same from `min` to `max`; NaN is nothing.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, Number min, Number max) {
  const std::optional<Number> number = parse_number<Number>(text);
  return number && *number >= min && *number <= max ? number : std::nullopt;
}

}  // namespace trainyard
