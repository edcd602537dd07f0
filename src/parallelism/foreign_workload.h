// SPDX-License-Identifier: Apache-2.0
// Workloads in files of other tools, as operation graphs (docs/foreign-workloads.md).
//
// A reader takes everything in a file or says what it cannot take: ConfigError, one line, with the
// file, the line or node, and the field. What has no effect by a rule of the page is counted.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/graph_lowering.h"
#include "parallelism/operation_graph.h"
#include "parallelism/step_parts.h"
#include "sim/units.h"

namespace trainyard {

enum class ForeignFormat : std::uint8_t { Goal, SimAi, Kineto };

inline constexpr std::array kForeignFormats{ForeignFormat::Goal, ForeignFormat::SimAi,
                                            ForeignFormat::Kineto};

// "goal", ...
[[nodiscard]] std::string_view to_string(ForeignFormat format);

// What time of this part is called where the operations come from such a file; empty: no time of a
// run is counted as it.
[[nodiscard]] std::string_view foreign_part_name(ForeignFormat format, StepPart part);

struct ForeignFile {
  std::string name;         // For messages.
  std::optional<int> rank;  // As its name says.
  std::string text;
};

struct ForeignWorkload {
  ForeignFormat format = ForeignFormat::Goal;
  OperationGraph graph;
  // With their numbers: "412 CPU operators that launch nothing".
  std::vector<std::string> left_out = {};
  std::vector<std::string> notes = {};  // What was taken to be so; one line each.
};

// The format that this path has by the rules of the page: by its extension, else by the first word
// of the file. Nothing: a workload of our own, or nothing that can be read.
[[nodiscard]] std::optional<ForeignFormat> recognise_foreign(const std::filesystem::path& path);

// A file, a directory with one for each rank, or a pattern with "{rank}" in the name. By rank,
// where names have one.
[[nodiscard]] std::vector<ForeignFile> read_foreign_files(const std::filesystem::path& path,
                                                          ForeignFormat format);

// What the ranks of a workload are.
struct ForeignTarget {
  // By GPU of the cluster; rank r is the GPU r.
  std::span<const int> server_of_gpu;
  // Folded: where a file says that all ranks do the same, one of them stands for all.
  Folding folding = Folding::Folded;

  [[nodiscard]] int gpus() const { return static_cast<int>(server_of_gpu.size()); }
};

// The graph passed check().
[[nodiscard]] ForeignWorkload read_foreign(const std::vector<ForeignFile>& files,
                                           ForeignFormat format, const ForeignTarget& target);

}  // namespace trainyard
