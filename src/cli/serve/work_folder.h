// SPDX-License-Identifier: Apache-2.0
// A page may name files of one work folder, and nothing of the file system beside it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

// The files below the folder, by their names in it, sorted. Throws ConfigError if it is no folder
// that can be read, has more than 10,000 entries, or has a symbolic link that leads out of it.
[[nodiscard]] std::vector<std::string> work_files(const std::filesystem::path& folder);

// Refuses a value that could name a file outside of the folder in which it is read: an absolute
// path or a step upwards anywhere in it, a character that a reader of YAML may turn into one, or a
// control character. `what` is the option, for the error. Throws ConfigError.
void check_stays_inside(std::string_view what, std::string_view value);

}  // namespace trainyard
