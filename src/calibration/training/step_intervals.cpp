// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/step_intervals.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "sim/config.h"

namespace trainyard {
namespace {

// Groups that those of the neighbouring kind count as, together, as with collectives.
constexpr double kNeighbour = 2.0;
// Share of a step from which on its launches decide about it; with a thousandth to a twentieth the
// bands move by a hundredth.
constexpr double kHostShare = 0.01;

struct KindRow {
  std::string_view generation;
  std::string_view model;
  std::string_view title;
  PredictionKind kind;
};
constexpr std::array<KindRow, 6> kKinds{
    {{"measured", "dense", "dense", {true, false, false}},
     {"measured", "dense_host", "dense, waits for launches", {true, false, true}},
     {"measured", "experts", "with experts", {true, true, false}},
     {"measured", "experts_host", "with experts, waits for launches", {true, true, true}},
     {"unmeasured", "dense", "dense, GPUs not measured", {false, false, false}},
     {"unmeasured", "experts", "with experts, GPUs not measured", {false, true, false}}}};

PredictionKind kind_of(const ScoredStep& step, bool is_measured) {
  return {.is_measured = is_measured,
          .has_experts = step.has_experts,
          .waits_for_host = is_measured && step.waits_for_host};
}

// The kind that is nearest: of the same models with other launches, or of other models.
PredictionKind neighbour_of(PredictionKind kind) {
  bool& flipped = kind.is_measured ? kind.waits_for_host : kind.has_experts;
  flipped = !flipped;
  return kind;
}

// Sources with steps of a kind, by what is off together.
struct SourceGroup {
  std::vector<std::vector<double>> sources;
};

std::vector<SourceGroup> groups_of(std::span<const SourceScore> sources, PredictionKind kind) {
  std::map<std::string, SourceGroup> groups;
  for (const SourceScore& source : sources) {
    std::vector<double> surprises;
    for (const ScoredStep& step : source.steps) {
      if (kind_of(step, kind.is_measured) == kind) {
        surprises.push_back(-step.log_error());
      }
    }
    if (!surprises.empty()) {
      groups[kind.is_measured ? source.name + " " + source.generation : source.generation]
          .sources.push_back(std::move(surprises));
    }
  }
  std::vector<SourceGroup> all;
  for (auto& [name, group] : groups) {
    all.push_back(std::move(group));
  }
  return all;
}

// All groups weigh the same, `total` together.
void add_errors(const std::vector<SourceGroup>& groups, double total, bool both_ways,
                std::vector<WeightedError>& errors) {
  for (const SourceGroup& group : groups) {
    for (const std::vector<double>& source : group.sources) {
      const double weight = total / static_cast<double>(groups.size()) /
                            static_cast<double>(group.sources.size()) /
                            static_cast<double>(source.size());
      for (const double surprise : source) {
        errors.push_back({.surprise = surprise, .weight = weight});
        if (both_ways) {
          errors.push_back({.surprise = -surprise, .weight = weight});
        }
      }
    }
  }
}

std::vector<SourceScore> without(std::span<const SourceScore> sources,
                                 const std::function<bool(const SourceScore&)>& is_left_out) {
  std::vector<SourceScore> others;
  std::remove_copy_if(sources.begin(), sources.end(), std::back_inserter(others), is_left_out);
  return others;
}

}  // namespace

bool waits_for_host(const StepTime& step) {
  return step.parts[StepPart::Host].real_picoseconds() >= kHostShare * step.time.real_picoseconds();
}

StepIntervals StepIntervals::of(std::span<const SourceScore> halves,
                                std::span<const SourceScore> left_out) {
  StepIntervals intervals;
  for (const KindRow& row : kKinds) {
    const std::span<const SourceScore> sources = row.kind.is_measured ? halves : left_out;
    const std::vector<SourceGroup> own = groups_of(sources, row.kind);
    if (own.empty()) {
      continue;
    }
    std::vector<WeightedError> errors;
    add_errors(own, static_cast<double>(own.size()), !row.kind.is_measured, errors);
    TimeBand counted;
    for (const SourceGroup& group : own) {
      counted.systems += group.sources.size();
      for (const std::vector<double>& source : group.sources) {
        counted.rows += source.size();
      }
    }
    add_errors(groups_of(sources, neighbour_of(row.kind)), kNeighbour, !row.kind.is_measured,
               errors);
    const TimeBand band = band_of(std::move(errors));
    counted.low = band.low;
    counted.high = band.high;
    intervals.bands_[row.kind] = counted;
  }
  return intervals;
}

void StepIntervals::fields(Fields& fields) {
  for (const std::string_view generation : {"measured", "unmeasured"}) {
    const auto rows = [&](Fields& inner, std::map<PredictionKind, TimeBand>& bands) {
      for (const KindRow& row : kKinds) {
        if (row.generation == generation) {
          inner.required(row.model, bands[row.kind], Group{band_fields},
                         row.kind.waits_for_host ? "Models of this kind, waiting for launches."
                                                 : "Models of this kind.");
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

std::map<std::string, Coverage> coverage_of(std::span<const SourceScore> sources,
                                            const IntervalsOfSource& intervals, bool is_measured) {
  std::map<std::string, Coverage> coverage;
  for (const SourceScore& source : sources) {
    const StepIntervals& bands = intervals(source);
    for (const ScoredStep& step : source.steps) {
      const PredictionKind kind = kind_of(step, is_measured && source.is_measured);
      if (!bands.has(kind)) {
        continue;
      }
      const TimeBand& band = bands.band(kind);
      const double ratio = step.measured_s / step.predicted_s;
      const bool is_inside = band.low <= ratio && ratio <= band.high;
      const auto* const row = std::ranges::find(kKinds, kind, &KindRow::kind);
      std::vector<std::string> classes{"all", "kind: " + std::string(row->title),
                                       "GPUs: " + source.generation,
                                       "source: " + source.name + " " + source.generation};
      if (step.has_adapters) {
        classes.emplace_back("kind: LoRA");
      }
      for (const std::string& name : classes) {
        ++coverage[name].rows;
        coverage[name].inside += is_inside ? 1 : 0;
      }
    }
  }
  return coverage;
}

std::map<std::string, Coverage> coverage_by_other_sources(std::span<const SourceScore> halves) {
  std::map<std::string, StepIntervals> others;
  for (const SourceScore& source : halves) {
    others[source.name] = StepIntervals::of(
        without(halves, [&](const SourceScore& one) { return one.name == source.name; }), {});
  }
  return coverage_of(
      halves,
      [&](const SourceScore& source) -> const StepIntervals& { return others.at(source.name); },
      true);
}

std::map<std::string, Coverage> coverage_by_other_generations(
    std::span<const SourceScore> left_out) {
  std::map<std::string, StepIntervals> others;
  for (const SourceScore& source : left_out) {
    const std::string& generation = source.generation;
    others[generation] = StepIntervals::of({}, without(left_out, [&](const SourceScore& one) {
                                             return one.generation == generation;
                                           }));
  }
  return coverage_of(
      left_out,
      [&](const SourceScore& source) -> const StepIntervals& {
        return others.at(source.generation);
      },
      false);
}

}  // namespace trainyard
