// SPDX-License-Identifier: Apache-2.0
#include "sim/json_complaint.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {

namespace {

// The byte `at` of the text, as "NAME:LINE:COLUMN".
std::string json_place(const std::string& name, std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_break = before.rfind('\n');
  return fmt::format("{}:{}:{}", name, 1 + std::count(before.begin(), before.end(), '\n'),
                     line_break == std::string_view::npos ? at + 1 : at - line_break);
}

}  // namespace

void check_json_depth(const std::string& name, std::string_view text) {
  std::int64_t levels = 0;
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (is_quoted) {
      at += letter == '\\' ? 1 : 0;
      is_quoted = letter != '"';
    } else if (letter == '"') {
      is_quoted = true;
    } else if (letter == '[' || letter == '{') {
      if (++levels > kMaxJsonLevels) {
        throw ConfigError(
            fmt::format("{}: expected at most {} levels of lists and objects, found more",
                        json_place(name, text, at), kMaxJsonLevels));
      }
    } else if (letter == ']' || letter == '}') {
      --levels;
    }
  }
}

void fail_json(const std::string& name, std::string_view text, const std::exception& problem) {
  const auto* const syntax = dynamic_cast<const nlohmann::json::parse_error*>(&problem);
  if (syntax == nullptr) {  // Such as a number that no double holds; these have no place.
    const std::string_view all = problem.what();
    const std::size_t end_of_kind = all.find("] ");
    throw ConfigError(fmt::format(
        "{}: expected JSON, found {}", name,
        escaped(all.substr(end_of_kind == std::string_view::npos ? 0 : end_of_kind + 2))));
  }
  // The place is that of the last byte that was read, counted from 1; one more at the end.
  const std::size_t at = std::min(syntax->byte == 0 ? 0 : syntax->byte - 1, text.size());
  const std::size_t line_break = text.substr(0, at).rfind('\n');
  const std::size_t start = line_break == std::string_view::npos ? 0 : line_break + 1;
  constexpr std::size_t kShownBefore = 10;  // The byte may be the last of a word.
  constexpr std::size_t kShown = 30;
  const std::size_t shown = std::max(start, at - std::min(at, kShownBefore));
  const std::string_view found = text.substr(shown, text.find('\n', at) - shown);
  throw ConfigError(
      fmt::format("{}: expected JSON, found {}", json_place(name, text, at),
                  at == text.size() ? "the end of the text" : in_quotes(found.substr(0, kShown))));
}

}  // namespace trainyard
