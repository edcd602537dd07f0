// SPDX-License-Identifier: Apache-2.0
// Predicted against measured step times, source by source.
//
// e = ln(predicted / measured), positive where the prediction is too slow. Of a source: the median
// and the 90th percentile of |e|, the median of e (its bias), and the median of |e - bias| (its
// scatter: what is left if its software had one factor of its own). A source with both dense models
// and models with experts counts as one of each. Summaries are means over sources, so that a table
// with a thousand rows weighs as much as one with ten.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "calibration/training/training_case.h"

namespace trainyard {

struct PredictedStep {
  double seconds = 0.0;         // Positive.
  bool waits_for_host = false;  // step_intervals.h has when.
};
// May throw ConfigError: the row is then not covered.
using StepPredictor =
    std::function<PredictedStep(const TrainingCase& item, const TrainingRun& run)>;
// Constants from these cases, all of one generation of GPUs, and a prediction with them.
using StepFit = std::function<StepPredictor(std::span<const LoadedTrainingCase* const> cases)>;

struct ScoredStep {
  std::string id;
  bool has_experts = false;
  bool has_adapters = false;    // LoRA.
  bool waits_for_host = false;  // As it was predicted.
  double measured_s = 0.0;
  double predicted_s = 0.0;

  [[nodiscard]] double log_error() const;
};

// Errors of the rows of a source, or their means over the sources that have such rows.
struct StepErrors {
  std::size_t sources = 0;  // Number of sources of a mean.
  std::size_t rows = 0;
  double median = 0.0;
  double p90 = 0.0;
  double bias = 0.0;
  double scatter = 0.0;
};
[[nodiscard]] StepErrors step_errors(std::span<const ScoredStep> rows);

// A row that was not predicted.
struct UnscoredRow {
  std::string id;
  TrainingRowStatus status = TrainingRowStatus::Missing;
  std::string reason;  // Missing fields, a clash, an exclusion, or why the predictor refused it.
};

struct SourceScore {
  std::string name;
  std::string generation;
  // Kernels of its GPUs were measured; a source without is not in the means over all.
  bool is_measured = true;
  // Rows of the case by what is known of them.
  std::map<TrainingRowStatus, std::size_t> status = {};
  std::map<std::string, std::size_t> missing = {};  // Rows that lack a field, by its key.
  std::vector<ScoredStep> steps = {};
  std::vector<UnscoredRow> unscored = {};
  StepErrors dense = {};
  StepErrors experts = {};
};

// Measured memory of one source, ln(predicted / measured) of the fullest rank.
struct MemoryScore {
  std::string name;  // Name of the table.
  StepErrors errors = {};
  std::vector<ScoredStep> rows = {};  // Bytes instead of seconds.
};

struct TrainingScore {
  std::vector<SourceScore> sources = {};
  StepErrors dense = {};
  StepErrors experts = {};
  std::vector<MemoryScore> memory_sources = {};
  StepErrors memory = {};
  std::map<std::string, StepErrors> dense_by_generation = {};
  std::map<std::string, StepErrors> experts_by_generation = {};
  std::map<TrainingRowStatus, std::size_t> status = {};
  std::map<std::string, std::size_t> missing = {};

  [[nodiscard]] std::size_t rows() const;
  // Rows with a plan, and those of them that were predicted.
  [[nodiscard]] std::size_t with_plan() const;
  [[nodiscard]] std::size_t predicted() const;
};

// Scores one case. Without a prediction only its coverage.
[[nodiscard]] SourceScore score_case(const LoadedTrainingCase& loaded,
                                     const StepPredictor& predict);
// Cases of one source and one generation become one; in the order of their names.
[[nodiscard]] TrainingScore score_of(std::vector<SourceScore> cases);

// Adds the score of each table of `folder`, in the order of their names; and their means. Throws
// ConfigError.
void add_memory_score(const std::filesystem::path& folder, TrainingScore& score);

// Each case with the constants of the other half of its generation. Cases without a half, and
// halves whose other one is empty, are left out.
[[nodiscard]] TrainingScore out_of_source_score(std::span<const LoadedTrainingCase> cases,
                                                const StepFit& fit);

}  // namespace trainyard
