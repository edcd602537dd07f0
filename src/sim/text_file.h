// SPDX-License-Identifier: Apache-2.0
// Reads files whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trainyard {

// The limit for files that people write.
inline constexpr std::uintmax_t kMaxTextBytes = std::uintmax_t{16} << 20U;

// The text of a file, or of a pipe; `name` represents it in errors. Throws ConfigError "NAME: ..."
// if it cannot be read or has more than `max_bytes`, a number of MiB.
[[nodiscard]] std::string read_whole_file(const std::filesystem::path& file,
                                          const std::string& name, std::uintmax_t max_bytes);

}  // namespace trainyard
