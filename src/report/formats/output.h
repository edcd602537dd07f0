// SPDX-License-Identifier: Apache-2.0
// Writing result files: whole or not at all.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trainyard {

// Replaces `file` by `text`. At every moment the file holds its old content or all of the new one:
// a temporary file in the same folder is written, flushed to the disk and renamed. A symbolic link
// is followed. A file that is no regular file (/dev/stdout, a pipe) is written directly. Throws
// ConfigError naming the file and the reason, and leaves nothing behind.
void write_file(const std::filesystem::path& file, const std::string& text);

// Returns why write_file() could not write the file now, in words of the system; nothing if it
// could. Writes a block beside a regular file and removes it, which a folder that may not be
// written, a read-only file system and a full disk refuse.
[[nodiscard]] std::optional<std::string> unwritable_reason(const std::filesystem::path& file);

}  // namespace trainyard
