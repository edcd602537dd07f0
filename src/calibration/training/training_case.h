// SPDX-License-Identifier: Apache-2.0
// Cases of measured training steps: validation/cases/training/*.yaml. A case takes rows of one
// table that ran on one kind of GPU, names the cluster that represents their machine, and states
// what was not in the source. docs/accuracy/training-validation.md has the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/training/training_run.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Constants are fitted on one half of the sources of a generation and scored on the other.
enum class TrainingHalf : std::uint8_t { None, A, B };

struct TrainingCase {
  std::string name;        // Name of the file.
  std::string source;      // Cases of one source are scored as one. The table's name if not said.
  std::string generation;  // Generation of GPUs: "a100".
  TrainingHalf half = TrainingHalf::None;
  std::filesystem::path reference;
  std::filesystem::path cluster;
  // Settings of the cluster, "key.path=value" as --set takes them.
  std::vector<std::string> settings;
  std::string note;

  // Returns the overrides for a run on that many GPUs.
  [[nodiscard]] ClusterOverrides overrides(const TrainingRun& run) const;
};

enum class TrainingRowStatus : std::uint8_t {
  Complete,  // The source says all that is needed.
  Assumed,   // The case says the rest.
  Missing,   // Something is said nowhere.
  Clash,     // Numbers of the plan do not fit together.
  Excluded,  // Excluded by the case.
  NoStep,    // Something else was measured.
};

[[nodiscard]] std::string_view to_string(TrainingRowStatus status);

struct TrainingCaseRow {
  std::string id;
  std::string release;  // Release of the software; may be empty.
  TrainingRowStatus status = TrainingRowStatus::Complete;
  std::vector<std::string> assumed = {};  // Keys of fields that the case gave.
  std::vector<std::string> missing = {};
  // Reason of an exclusion or a clash, or what else was measured.
  std::string reason = {};
  std::optional<TrainingRun> run = {};  // Run of complete and assumed rows.
};

struct LoadedTrainingCase {
  TrainingCase item;
  std::vector<TrainingCaseRow> rows;  // In the order of the table.
};

// Rows of such a file, which only describe it.
void training_case_fields(Fields& fields);

// Files are looked for as those of other cases (validation_case.h). Throws ConfigError with the
// place of the mistake; a pattern that fits no row is one.
[[nodiscard]] LoadedTrainingCase load_training_case(const std::filesystem::path& file,
                                                    const std::filesystem::path& root,
                                                    ModelFolder& models);

}  // namespace trainyard
