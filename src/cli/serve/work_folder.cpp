// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/work_folder.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <system_error>

#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 10'000;

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::ranges::mismatch(folder, path).in1 == folder.end();
}

// A character that goes on with a name, so that a slash behind it is no beginning of a path.
bool is_of_name(char character) {
  constexpr std::string_view kOthers = "_.-+%)";
  return std::isalnum(static_cast<unsigned char>(character)) != 0 ||
         kOthers.find(character) != std::string_view::npos;
}

bool is_absolute_at(std::string_view value, std::size_t slash) {
  return slash == 0 || !is_of_name(value[slash - 1]);
}

// Two dots between the ends of the value, slashes and characters that are of no name.
bool is_upwards_at(std::string_view value, std::size_t dots) {
  const bool begins = dots == 0 || !is_of_name(value[dots - 1]);
  const std::size_t end = dots + 2;
  return begins && (end == value.size() || !is_of_name(value[end]));
}

}  // namespace

std::vector<std::string> work_files(const fs::path& folder) {
  const auto fail = [&](std::string_view expected, std::string_view found) {
    throw ConfigError(fmt::format("--folder: expected {}, found {}", expected, found));
  };
  std::vector<std::string> names;
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error || !fs::is_directory(root)) {
    fail("a folder", in_quotes(folder.string()));
  }
  std::size_t entries = 0;
  fs::recursive_directory_iterator entry(root, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(root).string();
    if (++entries > kMostEntries) {
      fail(fmt::format("at most {} entries in it", kMostEntries), "more");
    }
    if (entry->is_symlink() && !is_below(fs::weakly_canonical(entry->path(), error), root)) {
      fail("no symbolic link out of it", in_quotes(name));
    }
    if (entry->is_regular_file(error)) {
      names.push_back(name);
    }
  }
  if (error) {
    fail("a folder that can be read", error.message());
  }
  std::ranges::sort(names);
  return names;
}

void check_stays_inside(std::string_view what, std::string_view value) {
  const auto fail = [&](std::string_view expected) {
    throw ConfigError(fmt::format("{}: expected {}, found {}", what, expected, in_quotes(value)));
  };
  for (std::size_t at = 0; at < value.size(); ++at) {
    if (value[at] == '\\' || std::iscntrl(static_cast<unsigned char>(value[at])) != 0) {
      fail("no backslash and no control character");
    }
    if (value[at] == '/' && is_absolute_at(value, at)) {
      fail("no path that begins with a slash");
    }
    if (value.substr(at).starts_with("..") && is_upwards_at(value, at)) {
      fail("no path out of the work folder");
    }
  }
}

}  // namespace trainyard
