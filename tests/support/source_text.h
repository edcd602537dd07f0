// SPDX-License-Identifier: Apache-2.0
// The text files of the repository as tests/tidy_test.cpp sees them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

// The three views have the same number of lines and, but for UTF-8, the same columns.
struct SourceFile {
  std::string path;                   // Relative to the root, with '/'.
  std::vector<std::string> text;      // As written.
  std::vector<std::string> code;      // Comments and the insides of literals are blanks.
  std::vector<std::string> comments;  // All but comments is blanks.
};

// Views `text` as C++; what that gives for other languages in `code` and `comments` means nothing.
[[nodiscard]] SourceFile parse_source(std::string path, std::string_view text);

// All text files below `root`, sorted by path, except in hidden folders (but .ci) and build
// folders.
[[nodiscard]] std::vector<SourceFile> read_source_tree(const std::filesystem::path& root);

// The columns of a line of UTF-8, one for each code point.
[[nodiscard]] std::size_t count_columns(std::string_view line);

}  // namespace trainyard
