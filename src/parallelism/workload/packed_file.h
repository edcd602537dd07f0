// SPDX-License-Identifier: Apache-2.0
// Files as they are, or packed by gzip or zstd, whatever their names are: the first bytes tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trainyard {

// The name without .gz or .zst at its end: "trace.json" of "trace.json.gz".
[[nodiscard]] std::filesystem::path unpacked_name(const std::filesystem::path& path);

// Returns the size of a file. Throws ConfigError unless it is one, of at most so many bytes, a
// number of GiB.
[[nodiscard]] std::uintmax_t readable_size(const std::filesystem::path& path,
                                           std::uintmax_t max_bytes);

// Returns whether a file begins as one packed by gzip or zstd; false where it cannot be read.
[[nodiscard]] bool is_packed(const std::filesystem::path& path);

// The text of a file, unpacked. Throws ConfigError if it cannot be read, is damaged or cut off, or
// has more than `max_bytes`, a number of GiB, packed or unpacked.
[[nodiscard]] std::string read_packed_file(const std::filesystem::path& path,
                                           std::uintmax_t max_bytes);

}  // namespace trainyard
