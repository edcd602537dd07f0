// SPDX-License-Identifier: Apache-2.0
// The files of workloads that other tools write: their formats and which rank each file is of
// (docs/inputs/imported-workloads.md).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

enum class ImportedFormat : std::uint8_t { Goal, SimAi, Kineto, Chakra };

inline constexpr std::array kImportedFormats{ImportedFormat::Goal, ImportedFormat::SimAi,
                                             ImportedFormat::Kineto, ImportedFormat::Chakra};

// The first bytes of a GOAL schedule in binary form, and of one that LogGOPSim has destroyed.
inline constexpr std::string_view kGoalMagic("\x7f\x10\0\0\0\0\0\0", 8);
inline constexpr std::string_view kGoalMagicOfDestroyed("\x26\x09\0\0\0\0\0\0", 8);
[[nodiscard]] inline bool is_goal_magic(std::string_view head) {
  return head.starts_with(kGoalMagic) || head.starts_with(kGoalMagicOfDestroyed);
}

// "goal", ...
[[nodiscard]] std::string_view to_string(ImportedFormat format);

struct ImportedFile {
  std::string name;         // For messages.
  std::optional<int> rank;  // As its name says, where names of its format do, or the pattern.
  std::string text;
  // The text is not here but in the file `name`, for readers that take line after line
  // (imported_lines.h) or file after file.
  bool is_on_disc = false;
};

// The file with its text. Throws ConfigError.
[[nodiscard]] ImportedFile with_text(const ImportedFile& file);

// The format that this path has by the rules of the page: by its extension, else by the first bytes
// or the first word of the file. Nothing: a workload of our own, or nothing that can be read.
[[nodiscard]] std::optional<ImportedFormat> recognise_imported(const std::filesystem::path& path);

// A file, a directory with one for each rank, or a pattern with "{rank}" in the name. The files are
// sorted by rank, where names have one.
[[nodiscard]] std::vector<ImportedFile> read_imported_files(const std::filesystem::path& path,
                                                            ImportedFormat format);

}  // namespace trainyard
