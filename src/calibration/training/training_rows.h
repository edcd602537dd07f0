// SPDX-License-Identifier: Apache-2.0
// Tables of measured training steps: validation/training/*.yaml.
// docs/accuracy/training-validation.md has the keys.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calibration/training/training_fields.h"
#include "parallelism/operators/model_flops.h"
#include "sim/units.h"

namespace trainyard {

// The figures as printed; several of them may be, and may differ by their rounding. All are
// positive.
struct TrainingMeasurement {
  std::optional<double> step_time_s = {};
  std::optional<double> tokens_per_s = {};  // Tokens of the whole cluster.
  std::optional<double> tokens_per_s_per_gpu = {};
  std::optional<double> samples_per_s_per_gpu = {};
  std::optional<double> tflops_per_gpu = {};
  std::optional<double> mfu_percent = {};
  std::optional<double> hfu_percent = {};
  std::optional<double> peak_tflops = {};  // Peak that a utilisation is relative to.
  // Convention of the last four; nothing for a source's own words.
  std::optional<FlopsConvention> convention = {};
  // Memory of the GPU with most, as the source counts.
  std::optional<Bytes> memory = {};
  bool out_of_memory = false;
};

struct TrainingRow {
  std::string id;
  // Kind of measurement other than a step, whose figures are not read.
  std::optional<std::string> kind = {};
  std::optional<std::string> task = {};     // "pretrain", "sft", "lora".
  std::optional<std::string> release = {};  // Release of the software.
  TrainingFields fields;
  TrainingMeasurement measured;
};

struct TrainingTable {
  std::string name;  // Name of the file, without folder and ending.
  std::string title;
  std::string url;
  std::vector<TrainingRow> rows;  // No id twice.
};

void training_table_fields(Fields& fields, TrainingTable& table);
// Strict; throws ConfigError with the place of the mistake.
[[nodiscard]] TrainingTable read_training_table(ConfigDocument& document);
[[nodiscard]] TrainingTable load_training_table(const std::filesystem::path& file);

}  // namespace trainyard
