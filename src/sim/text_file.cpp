// SPDX-License-Identifier: Apache-2.0
#include "sim/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {

std::string read_whole_file(const std::filesystem::path& file, const std::string& name,
                            std::uintmax_t max_bytes) {
  const auto fail = [&](const std::string& what) {
    throw ConfigError(escaped(name) + ": " + what);
  };
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    fail("expected a file, found a directory");
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    fail(std::string("cannot be read: ") + std::strerror(errno));
  }
  // A pipe does not say how much there is: twice as much each time.
  constexpr std::uintmax_t kFirstBytes = std::uintmax_t{1} << 16U;
  const std::uintmax_t stated = std::filesystem::file_size(file, error);
  const std::uintmax_t first = error ? kFirstBytes : std::max(stated + 1, kFirstBytes);
  std::string text;
  for (std::size_t had = 0; stream && had <= max_bytes; had = text.size()) {
    text.resize(std::min(max_bytes + 1, std::max<std::uintmax_t>(2 * had, first)));
    stream.read(text.data() + had, static_cast<std::streamsize>(text.size() - had));
    text.resize(had + static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) {
    fail(std::string("cannot be read: ") + std::strerror(errno));
  }
  if (text.size() > max_bytes) {
    fail("expected at most " + std::to_string(max_bytes >> 20U) + " MiB, found more");
  }
  return text;
}

}  // namespace trainyard
