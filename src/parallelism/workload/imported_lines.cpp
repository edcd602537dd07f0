// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/imported_lines.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;  // Small, yet few calls of the system.

}  // namespace

ImportedLines::ImportedLines(const ImportedFile& file) : file_(file), rest_(file.text) {
  if (file.is_on_disc) {
    errno = 0;
    stream_.open(file.name, std::ios::binary);
    read_on();
  }
}

std::optional<std::string_view> ImportedLines::next() {
  std::size_t end = rest_.find('\n');
  while (end == std::string_view::npos && stream_.is_open()) {
    const std::size_t searched = rest_.size();
    read_on();
    end = rest_.find('\n', searched);
  }
  if (rest_.empty()) {
    return std::nullopt;
  }
  const std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
  return line;
}

// Adds a block to what is left of those before; closes the file at its end.
void ImportedLines::read_on() {
  block_.erase(0, block_.size() - rest_.size());
  const std::size_t left = block_.size();
  block_.resize(left + kBlockBytes);
  if (!stream_.read(block_.data() + left, kBlockBytes)) {
    if (!stream_.eof()) {
      throw ConfigError(file_.name + ": cannot be read: " + std::strerror(errno));
    }
    block_.resize(left + static_cast<std::size_t>(stream_.gcount()));
    stream_.close();
  }
  rest_ = block_;
}

}  // namespace trainyard
