// SPDX-License-Identifier: Apache-2.0
// The 90 % interval of a predicted training step: measured over predicted, of sources that no
// constant was fitted to, and of generations of GPUs whose rates were taken from the others
// (docs/accuracy/intervals.md).
//
// Steps of one source are off together, so that a source weighs the same however many rows it has.
// A kind of step has few sources, so that those of its neighbour count as two more. Steps of a GPU
// that nobody measured are off by its generation. There are fewer than ten, of which nine in ten
// are all but none: the band is that of the one that is furthest off.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "calibration/fit/intervals.h"
#include "calibration/fit/time_band.h"
#include "calibration/training/training_score.h"
#include "parallelism/closed_forms/step_time.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// A kind of prediction: how far it may be off depends on these.
struct PredictionKind {
  bool is_measured = true;  // Kernels of the generation of its GPUs were measured.
  // Below, never set of GPUs that nobody measured: the generation is less certain than these.
  bool has_experts = false;  // The model has experts.
  // The step waits for launches, at a pace that the processor of the server sets, which no cluster
  // names.
  bool waits_for_host = false;
  friend auto operator<=>(const PredictionKind&, const PredictionKind&) = default;
};

[[nodiscard]] PredictionKind kind_of(bool is_measured, bool has_experts, bool waits_for_host);

// Whether the GPUs wait for launches for at least a hundredth of the step.
[[nodiscard]] bool waits_for_host(const StepTime& step);

class StepIntervals {
 public:
  // The bands of measured GPUs that `halves` gives, of sources with constants of others, and those
  // of other GPUs that `left_out` gives, with rates of other generations. The latter are as wide in
  // both directions, as nothing says which way the next one is off. A kind without any has none.
  [[nodiscard]] static StepIntervals of(std::span<const SourceScore> halves,
                                        std::span<const SourceScore> left_out);
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

// The intervals that the steps of a source are held against.
using IntervalsOfSource = std::function<const StepIntervals&(const SourceScore& source)>;
// Rows that lie in the intervals: of "all", and by kind, generation of GPUs and source.
// `is_measured`: those of sources whose kernels were measured are taken as such.
[[nodiscard]] std::map<std::string, Coverage> coverage_of(std::span<const SourceScore> sources,
                                                          const IntervalsOfSource& intervals,
                                                          bool is_measured);

// Each source with the intervals that all others give.
[[nodiscard]] std::map<std::string, Coverage> coverage_by_other_sources(
    std::span<const SourceScore> halves);
// Each generation with the intervals that the others give.
[[nodiscard]] std::map<std::string, Coverage> coverage_by_other_generations(
    std::span<const SourceScore> left_out);

}  // namespace trainyard
