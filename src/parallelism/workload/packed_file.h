// SPDX-License-Identifier: Apache-2.0
// Files as they are, or packed by gzip or zstd, whatever their names are: the first bytes tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trainyard {

// The name without .gz or .zst at its end: "trace.json" of "trace.json.gz".
[[nodiscard]] std::filesystem::path unpacked_name(const std::filesystem::path& path);

// The text of a file, unpacked. Throws ConfigError if it cannot be read, is damaged or cut off, or
// has more than `max_bytes`, a number of GiB, packed or unpacked.
[[nodiscard]] std::string read_packed_file(const std::filesystem::path& path,
                                           std::uintmax_t max_bytes);

}  // namespace trainyard
