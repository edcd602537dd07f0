// SPDX-License-Identifier: Apache-2.0
// The files of workloads that other tools write: their formats and which rank each file is of
// (docs/inputs/foreign-workloads.md).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

enum class ForeignFormat : std::uint8_t { Goal, SimAi, Kineto, Chakra };

inline constexpr std::array kForeignFormats{ForeignFormat::Goal, ForeignFormat::SimAi,
                                            ForeignFormat::Kineto, ForeignFormat::Chakra};

// "goal", ...
[[nodiscard]] std::string_view to_string(ForeignFormat format);

struct ForeignFile {
  std::string name;         // For messages.
  std::optional<int> rank;  // As its name says.
  std::string text;
};

// The format that this path has by the rules of the page: by its extension, else by the first word
// of the file. Nothing: a workload of our own, or nothing that can be read.
[[nodiscard]] std::optional<ForeignFormat> recognise_foreign(const std::filesystem::path& path);

// A file, a directory with one for each rank, or a pattern with "{rank}" in the name. The files are
// sorted by rank, where names have one.
[[nodiscard]] std::vector<ForeignFile> read_foreign_files(const std::filesystem::path& path,
                                                          ForeignFormat format);

}  // namespace trainyard
