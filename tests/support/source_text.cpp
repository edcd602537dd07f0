// SPDX-License-Identifier: Apache-2.0
// A scanner for C++ that knows comments and literals and nothing else: no line continuations, no
// trigraphs.
#include "support/source_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

namespace trainyard {

namespace {

enum class Kind { Code, Literal, Comment };

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The position after the literal that starts at `first` with a quote; a line end closes it too.
std::size_t end_of_quoted(std::string_view text, std::size_t first) {
  std::size_t i = first + 1;
  while (i < text.size() && text[i] != text[first] && text[i] != '\n') {
    i += text[i] == '\\' ? 2 : 1;
  }
  return std::min(i + 1, text.size());
}

// The position after the raw string whose quote is at `quote`: R"delimiter( ... )delimiter".
std::size_t end_of_raw(std::string_view text, std::size_t quote) {
  const std::size_t open = std::min(text.find('(', quote), text.size());
  std::string close(1, ')');
  close.append(text.substr(quote + 1, open - quote - 1));
  close.push_back('"');
  const std::size_t last = text.find(close, open);
  return last == std::string_view::npos ? text.size() : last + close.size();
}

std::size_t end_after(std::string_view text, std::size_t from, std::string_view mark) {
  const std::size_t found = text.find(mark, from);
  return found == std::string_view::npos ? text.size() : found + mark.size();
}

// What starts at `i`, and where it ends.
std::pair<Kind, std::size_t> next_piece(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  if (rest.substr(0, 2) == "//") {
    return {Kind::Comment, std::min(text.find('\n', i), text.size())};
  }
  if (rest.substr(0, 2) == "/*") {
    return {Kind::Comment, end_after(text, i + 2, "*/")};
  }
  if (rest[0] == '"') {
    const bool raw = i > 0 && text[i - 1] == 'R' && (i < 2 || !is_word(text[i - 2]));
    return {Kind::Literal, raw ? end_of_raw(text, i) : end_of_quoted(text, i)};
  }
  // After a word's letter an apostrophe separates digits, as in 1'000.
  if (rest[0] == '\'' && (i == 0 || !is_word(text[i - 1]))) {
    return {Kind::Literal, end_of_quoted(text, i)};
  }
  return {Kind::Code, i + 1};
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void blank(std::string& text, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last; ++i) {
    if (text[i] != '\n') {
      text[i] = ' ';
    }
  }
}

bool is_text_file(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 11> kExtensions = {
      "", ".cpp", ".h", ".cu", ".txt", ".cmake", ".json", ".yaml", ".md", ".py", ".sh"};
  const std::string extension = path.extension().string();
  return std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end();
}

bool is_skipped_folder(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return (name[0] == '.' && name != ".ci") || name.substr(0, 5) == "build";
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

SourceFile parse_source(std::string path, std::string_view text) {
  std::string code(text);
  std::string comments(text);
  for (std::size_t i = 0; i < text.size();) {
    const auto [kind, end] = next_piece(text, i);
    if (kind != Kind::Comment) {
      blank(comments, i, end);
    }
    if (kind == Kind::Comment) {
      blank(code, i, end);
    } else if (kind == Kind::Literal) {
      blank(code, i + 1, end - 1);
    }
    i = end;
  }
  return {std::move(path), split_lines(text), split_lines(code), split_lines(comments)};
}

std::vector<SourceFile> read_source_tree(const std::filesystem::path& root) {
  std::vector<SourceFile> files;
  std::filesystem::recursive_directory_iterator entry(root);
  for (const auto end = std::filesystem::end(entry); entry != end; ++entry) {
    if (entry->is_directory()) {
      if (is_skipped_folder(entry->path())) {
        entry.disable_recursion_pending();
      }
    } else if (entry->is_regular_file() && is_text_file(entry->path())) {
      files.push_back(parse_source(entry->path().lexically_relative(root).generic_string(),
                                   read_text(entry->path())));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::size_t count_columns(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
  }));
}

}  // namespace trainyard
