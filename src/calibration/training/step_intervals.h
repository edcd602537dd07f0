// SPDX-License-Identifier: Apache-2.0
// The 90 % interval of a predicted training step: measured over predicted, of sources that no
// constant was fitted to, and of generations of GPUs whose rates were taken from the others
// (docs/accuracy/intervals.md).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "calibration/fit/intervals.h"
#include "calibration/fit/time_band.h"
#include "calibration/training/training_score.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// A kind of prediction: how far it may be off depends on these.
struct PredictionKind {
  bool is_measured = true;   // Kernels of the generation of its GPUs were measured.
  bool has_experts = false;  // The model has experts.
  friend auto operator<=>(const PredictionKind&, const PredictionKind&) = default;
};

class StepIntervals {
 public:
  // Adds the band of the sources that `score` has of such models, but for those of the generation
  // `without`. Of generations that are not measured it is as wide in both directions, as nothing
  // says which way the next one is off. A kind without any has none.
  void add(PredictionKind kind, const TrainingScore& score, std::string_view without = "");
  // Rows of such a file.
  void fields(Fields& fields);
  // Throws ConfigError.
  [[nodiscard]] static StepIntervals load(const std::filesystem::path& file);
  [[nodiscard]] std::string to_yaml() const;

  [[nodiscard]] bool has(PredictionKind kind) const { return bands_.contains(kind); }
  [[nodiscard]] const TimeBand& band(PredictionKind kind) const { return bands_.at(kind); }

 private:
  std::map<PredictionKind, TimeBand> bands_;
};

// Rows of `score` that lie in the intervals, of one generation or, where it is empty, of all.
// `is_measured`: those of sources whose kernels were measured are taken as such.
[[nodiscard]] Coverage coverage_of(const TrainingScore& score, const StepIntervals& intervals,
                                   bool is_measured, std::string_view generation = "");

// Each generation with the intervals that the others give.
[[nodiscard]] std::map<std::string, Coverage> coverage_by_others(const TrainingScore& left_out);

}  // namespace trainyard
