// SPDX-License-Identifier: Apache-2.0
// Leads from what a row says to what ran: a model, a checked plan and the time of a step, or the
// list of what is missing. Nothing is guessed; what follows from other fields is computed:
//
//   data ranks         GPUs / (tensor x context x pipeline)
//   one of the three   global batch = micro-batch x data ranks x micro-batches
//   schedule           1F1B with one chunk, interleaved 1F1B with several, as Megatron does it
//   step time          from throughput, or from FLOP/s with their stated convention
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibration/training/training_rows.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"

namespace trainyard {

// The time of a step in seconds, from the first figure that the row has: a step time, tokens or
// samples per second, FLOP/s, or MFU of a stated peak. Nothing if it has none.
[[nodiscard]] std::optional<double> measured_seconds(const TrainingMeasurement& measured,
                                                     const Model& model, const ParallelPlan& plan,
                                                     int gpus);

struct TrainingRun {
  std::string id;
  Model model;
  ParallelPlan plan;  // Checked.
  SoftwareFields software;
  Precision precision = Precision::Bf16;
  std::string gpu;
  int gpus = 0;
  int gpus_per_node = 0;
  double measured_s = 0.0;

  [[nodiscard]] bool has_experts() const;
};

// The models of a folder, each read once.
class ModelFolder {
 public:
  explicit ModelFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  // Throws ConfigError if there is no such file, or for a mistake in it.
  [[nodiscard]] const Model& model(const std::string& name);

 private:
  std::filesystem::path folder_;
  std::map<std::string, Model> models_;
};

struct TrainingResolution {
  std::optional<TrainingRun> run = {};
  std::vector<std::string> missing = {};  // Keys of fields that the row would need.
  std::string clash = {};                 // One line with the numbers that do not fit together.
};

// Exactly one of the three is there. Throws ConfigError for a model file that cannot be read.
[[nodiscard]] TrainingResolution resolve(const TrainingRow& row, ModelFolder& models);

}  // namespace trainyard
