// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/step_intervals.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/config.h"

namespace trainyard {
namespace {

// Sources that those of the neighbouring kind count as, together, as with collectives.
constexpr double kNeighbour = 2.0;
// Share of a step from which on its launches decide about it; with a thousandth to a twentieth the
// bands move by a hundredth.
constexpr double kHostShare = 0.01;

struct KindRow {
  std::string_view key;
  std::string_view title;
  PredictionKind kind;
};
constexpr std::array<KindRow, 5> kKinds{
    {{"dense", "dense", {true, false, false}},
     {"dense_host", "dense, waits for launches", {true, false, true}},
     {"experts", "with experts", {true, true, false}},
     {"experts_host", "with experts, waits for launches", {true, true, true}},
     {"unmeasured", "GPUs not measured", {false, false, false}}}};

// The kind of the same models with other launches.
PredictionKind neighbour_of(PredictionKind kind) {
  kind.waits_for_host = !kind.waits_for_host;
  return kind;
}

// Surprises of each source with steps of that kind.
std::vector<std::vector<double>> surprises_of(std::span<const SourceScore> sources,
                                              PredictionKind kind) {
  std::vector<std::vector<double>> all;
  for (const SourceScore& source : sources) {
    std::vector<double> surprises;
    for (const ScoredStep& step : source.steps) {
      if (kind_of(kind.is_measured, step.has_experts, step.waits_for_host) == kind) {
        surprises.push_back(-step.log_error());
      }
    }
    if (!surprises.empty()) {
      all.push_back(std::move(surprises));
    }
  }
  return all;
}

// Sources weigh the same, `total` together.
void add_errors(const std::vector<std::vector<double>>& sources, double total, bool both_ways,
                std::vector<WeightedError>& errors) {
  for (const std::vector<double>& source : sources) {
    const double weight =
        total / static_cast<double>(sources.size()) / static_cast<double>(source.size());
    for (const double surprise : source) {
      errors.push_back({.surprise = surprise, .weight = weight});
      if (both_ways) {
        errors.push_back({.surprise = -surprise, .weight = weight});
      }
    }
  }
}

TimeBand band_beside(const std::vector<std::vector<double>>& own,
                     const std::vector<std::vector<double>>& neighbours) {
  std::vector<WeightedError> errors;
  add_errors(own, static_cast<double>(own.size()), false, errors);
  add_errors(neighbours, kNeighbour, false, errors);
  return band_of(std::move(errors));
}

// The band of the generation of GPUs that is furthest off, as wide in both directions.
TimeBand band_of_furthest(std::span<const SourceScore> left_out) {
  std::map<std::string, std::vector<SourceScore>> generations;
  for (const SourceScore& source : left_out) {
    generations[source.generation].push_back(source);
  }
  TimeBand widest;
  for (const auto& [generation, sources] : generations) {
    std::vector<WeightedError> errors;
    add_errors(surprises_of(sources, {.is_measured = false}), 1.0, true, errors);
    const TimeBand band = errors.empty() ? TimeBand() : band_of(std::move(errors));
    if (band.high > widest.high) {
      widest = band;
    }
  }
  return widest;
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

PredictionKind kind_of(bool is_measured, bool has_experts, bool waits_for_host) {
  return {.is_measured = is_measured,
          .has_experts = is_measured && has_experts,
          .waits_for_host = is_measured && waits_for_host};
}

StepIntervals StepIntervals::of(std::span<const SourceScore> halves,
                                std::span<const SourceScore> left_out) {
  StepIntervals intervals;
  for (const KindRow& row : kKinds) {
    const std::span<const SourceScore> sources = row.kind.is_measured ? halves : left_out;
    const std::vector<std::vector<double>> own = surprises_of(sources, row.kind);
    if (own.empty()) {
      continue;
    }
    TimeBand band = row.kind.is_measured
                        ? band_beside(own, surprises_of(sources, neighbour_of(row.kind)))
                        : band_of_furthest(sources);
    band.systems = own.size();
    band.rows = std::accumulate(own.begin(), own.end(), std::size_t{0},
                                [](std::size_t sum, const auto& of) { return sum + of.size(); });
    intervals.bands_[row.kind] = band;
  }
  return intervals;
}

void StepIntervals::fields(Fields& fields) {
  for (const KindRow& row : kKinds) {
    fields.required(row.key, bands_[row.kind], Group{band_fields},
                    fmt::format("Steps of this kind: {}.", row.title));
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
      "# was fitted to. Others: of the generation that is furthest off with the others' rates.\n"
      "# Written by trainyard validate --cases validation/cases/training --leave-one-out\n"
      "# --record-intervals.\n";
  for (const KindRow& row : kKinds) {
    if (const auto band = bands_.find(row.kind); band != bands_.end()) {
      text += fmt::format("{}: {}\n", row.key, band->second.to_yaml());
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
      const PredictionKind kind =
          kind_of(is_measured && source.is_measured, step.has_experts, step.waits_for_host);
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
