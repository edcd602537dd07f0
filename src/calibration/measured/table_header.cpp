// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/table_header.h"

#include <algorithm>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

using Words = std::vector<std::string_view>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Returns how many of the leading characters of `text` satisfy `is_member`.
template <typename Predicate>
std::size_t run_length(std::string_view text, Predicate is_member) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_member);
  return static_cast<std::size_t>(end - text.begin());
}

bool has_word(const Words& words, std::string_view one, std::string_view other) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return word == one || word == other; });
}

bool begins_header(std::string_view word) {
  return word == "size" || word == "bytes";
}

// Returns the place at which the words of a header begin, behind its '#' if it has one.
std::optional<std::size_t> begin_of_header(std::string_view line) {
  const std::size_t hash = line.find('#');
  if (hash != std::string_view::npos) {
    const Words words = imported_words(line.substr(hash + 1));
    if (!words.empty() && begins_header(words.front())) {
      return hash;
    }
  }
  const Words words = imported_words(line);
  const auto first = std::find_if(words.begin(), words.end(), begins_header);
  const Words rest(first, words.end());
  const bool is_header = has_word(rest, "count", "N") && has_word(rest, "type", "type");
  return is_header ? std::optional(static_cast<std::size_t>(first->data() - line.data()))
                   : std::nullopt;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::optional<TableHeader> parse_table_header(std::string_view line) {
  const std::optional<std::size_t> begin = begin_of_header(line);
  if (!begin) {
    return std::nullopt;
  }
  const Words words = imported_words(line.substr(line[*begin] == '#' ? *begin + 1 : *begin));
  TableHeader header;
  header.prefix = line.substr(0, *begin);
  header.words = words.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto* const name = std::ranges::find(kTimeColumns, words[i]);
    if (name != kTimeColumns.end()) {
      const auto at = static_cast<std::size_t>(name - kTimeColumns.begin());
      (header.out.at(at) ? header.in_place : header.out).at(at) = i;
    } else if (words[i] == "#wrong") {
      header.wrong.push_back(i);
    } else if (words[i] == "best") {
      header.best = i;
    }
  }
  if (!std::ranges::all_of(header.out, [](const auto& at) { return at.has_value(); })) {
    return std::nullopt;
  }
  return header;
}

// The line without a prefix that equals the header's up to its numbers and blanks; the line itself
// if it has none.
std::string_view without_prefix(std::string_view line, std::string_view prefix) {
  std::string_view rest = line;
  while (!prefix.empty()) {
    if (is_blank(prefix.front())) {
      prefix.remove_prefix(run_length(prefix, is_blank));
      rest.remove_prefix(run_length(rest, is_blank));
    } else if (rest.empty()) {
      return line;
    } else if (is_digit(prefix.front()) && is_digit(rest.front())) {
      prefix.remove_prefix(run_length(prefix, is_digit));
      rest.remove_prefix(run_length(rest, is_digit));
    } else if (prefix.front() == rest.front()) {
      prefix.remove_prefix(1);
      rest.remove_prefix(1);
    } else {
      return line;
    }
  }
  return rest;
}

// A row begins with a size and another number; a torn one may end within either.
bool looks_like_row(const std::vector<std::string_view>& words) {
  if (words.empty() || !std::all_of(words[0].begin(), words[0].end(), is_digit)) {
    return false;
  }
  return words.size() == 1 || is_digit(words[1].front());
}

}  // namespace trainyard
