// SPDX-License-Identifier: Apache-2.0
// The header of a table of nccl-tests, and the prefix that a launcher puts before its lines.
//
// Pasting into a page takes the '#' away from the front of lines (it begins a heading there); then
// the words that every version prints tell the header: size or bytes, count or N, and type.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace trainyard {

// Columns of a time and its bandwidths, out of place or in place.
inline constexpr std::array<std::string_view, 3> kTimeColumns{"time", "algbw", "busbw"};
using TimeColumns = std::array<std::optional<std::size_t>, kTimeColumns.size()>;

// The header's columns by meaning; indices into a row's words.
struct TableHeader {
  std::size_t line = 0;
  std::string_view prefix;
  std::size_t words = 0;
  TimeColumns out;  // The first column of a name is out of place, the second in place.
  TimeColumns in_place;
  std::vector<std::size_t> wrong;
  std::optional<std::size_t> best;
};

[[nodiscard]] std::optional<TableHeader> parse_table_header(std::string_view line);

// The line without a prefix that equals the header's up to its numbers and blanks; the line itself
// if it has none.
[[nodiscard]] std::string_view without_prefix(std::string_view line, std::string_view prefix);

// A row begins with a size and another number; a torn one may end within either.
[[nodiscard]] bool looks_like_row(const std::vector<std::string_view>& words);

[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace trainyard
