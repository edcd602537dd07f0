// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/step_intervals.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "sim/config.h"

namespace trainyard {
namespace {

struct KindRow {
  std::string_view generation;
  std::string_view model;
  PredictionKind kind;
};
constexpr std::array<KindRow, 4> kKinds{{{"measured", "dense", {true, false}},
                                         {"measured", "experts", {true, true}},
                                         {"unmeasured", "dense", {false, false}},
                                         {"unmeasured", "experts", {false, true}}}};

std::vector<double> surprises_of(const SourceScore& source, bool has_experts) {
  std::vector<double> surprises;
  for (const ScoredStep& step : source.steps) {
    if (step.has_experts == has_experts) {
      surprises.push_back(-step.log_error());
    }
  }
  return surprises;
}

}  // namespace

void StepIntervals::add(PredictionKind kind, const TrainingScore& score, std::string_view without) {
  std::vector<WeightedError> errors;
  std::size_t sources = 0;
  std::size_t rows = 0;
  for (const SourceScore& source : score.sources) {
    if (!without.empty() && source.generation == without) {
      continue;
    }
    const std::vector<double> surprises = surprises_of(source, kind.has_experts);
    const double weight = 1.0 / static_cast<double>(surprises.size());
    for (const double surprise : surprises) {
      errors.push_back({.surprise = surprise, .weight = weight});
      if (!kind.is_measured) {  // The next generation may be off the other way.
        errors.push_back({.surprise = -surprise, .weight = weight});
      }
    }
    sources += surprises.empty() ? 0 : 1;
    rows += surprises.size();
  }
  if (errors.empty()) {
    return;
  }
  TimeBand band = band_of(std::move(errors));
  band.systems = sources;
  band.rows = rows;
  bands_[kind] = band;
}

void StepIntervals::fields(Fields& fields) {
  for (const std::string_view generation : {"measured", "unmeasured"}) {
    const auto rows = [&](Fields& inner, std::map<PredictionKind, TimeBand>& bands) {
      for (const KindRow& row : kKinds) {
        if (row.generation == generation) {
          inner.required(row.model, bands[row.kind], Group{band_fields}, "Models of this kind.");
        }
      }
    };
    fields.required(generation, bands_, Group{rows},
                    generation == "measured" ? "Generations of GPUs with rates of their own."
                                             : "Generations with the mean of the others' rates.");
  }
}

StepIntervals StepIntervals::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  StepIntervals intervals;
  read_fields(document.root(), intervals,
              [](Fields& fields, StepIntervals& read) { read.fields(fields); });
  document.finish();
  return intervals;
}

std::string StepIntervals::to_yaml() const {
  std::string text =
      "# What was measured over what was predicted of training steps: nine in ten lie between low\n"
      "# and high (docs/accuracy/intervals.md). Measured generations: of sources that no constant\n"
      "# was fitted to. Others: of each generation with the mean of the others' rates.\n"
      "# Written by trainyard validate --cases validation/cases/training --leave-one-out\n"
      "# --record-intervals.\n";
  std::string_view before;
  for (const KindRow& row : kKinds) {
    if (row.generation != before) {
      text += fmt::format("{}:\n", row.generation);
      before = row.generation;
    }
    if (const auto band = bands_.find(row.kind); band != bands_.end()) {
      text += fmt::format("  {}: {}\n", row.model, band->second.to_yaml());
    }
  }
  return text;
}

Coverage coverage_of(const TrainingScore& score, const StepIntervals& intervals, bool is_measured,
                     std::string_view generation) {
  Coverage coverage;
  for (const SourceScore& source : score.sources) {
    if (!generation.empty() && source.generation != generation) {
      continue;
    }
    for (const ScoredStep& step : source.steps) {
      const PredictionKind kind{.is_measured = is_measured && source.is_measured,
                                .has_experts = step.has_experts};
      if (!intervals.has(kind)) {
        continue;
      }
      const TimeBand& band = intervals.band(kind);
      const double ratio = step.measured_s / step.predicted_s;
      ++coverage.rows;
      coverage.inside += band.low <= ratio && ratio <= band.high ? 1 : 0;
    }
  }
  return coverage;
}

std::map<std::string, Coverage> coverage_by_others(const TrainingScore& left_out) {
  std::set<std::string> generations;
  for (const SourceScore& source : left_out.sources) {
    generations.insert(source.generation);
  }
  std::map<std::string, Coverage> coverage;
  for (const std::string& generation : generations) {
    StepIntervals others;
    for (const bool has_experts : {false, true}) {
      others.add({.is_measured = false, .has_experts = has_experts}, left_out, generation);
    }
    coverage[generation] = coverage_of(left_out, others, false, generation);
  }
  return coverage;
}

}  // namespace trainyard
