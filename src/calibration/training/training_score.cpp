// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_score.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "calibration/measured/comparison.h"
#include "calibration/measured/memory_measurement.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

StepErrors errors_of(const std::vector<ScoredStep>& steps, bool with_experts) {
  std::vector<ScoredStep> wanted;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(wanted),
               [&](const ScoredStep& step) { return step.has_experts == with_experts; });
  return step_errors(wanted);
}

void add(StepErrors& means, const StepErrors& errors) {
  if (errors.rows == 0) {
    return;
  }
  ++means.sources;
  means.rows += errors.rows;
  means.median += errors.median;
  means.p90 += errors.p90;
  means.bias += errors.bias;
  means.scatter += errors.scatter;
}

std::string reason_of(const TrainingCaseRow& row) {
  return row.missing.empty() ? row.reason : fmt::format("{}", fmt::join(row.missing, ", "));
}

template <typename Key>
void merge(const std::map<Key, std::size_t>& counts, std::map<Key, std::size_t>& sums) {
  for (const auto& [key, count] : counts) {
    sums[key] += count;
  }
}

void divide(StepErrors& means) {
  const auto sources = static_cast<double>(std::max<std::size_t>(means.sources, 1));
  means.median /= sources;
  means.p90 /= sources;
  means.bias /= sources;
  means.scatter /= sources;
}

}  // namespace

double ScoredStep::log_error() const {
  return std::log(predicted_s / measured_s);
}

StepErrors step_errors(std::span<const ScoredStep> rows) {
  std::vector<double> signed_errors;
  std::vector<double> errors;
  for (const ScoredStep& row : rows) {
    signed_errors.push_back(row.log_error());
    errors.push_back(std::abs(row.log_error()));
  }
  const RegimeError sizes = regime_error(errors);
  StepErrors result{.rows = rows.size(),
                    .median = sizes.median,
                    .p90 = sizes.p90,
                    .bias = regime_error(signed_errors).median};
  for (std::size_t index = 0; index < errors.size(); ++index) {
    errors[index] = std::abs(signed_errors[index] - result.bias);
  }
  result.scatter = regime_error(errors).median;
  return result;
}

SourceScore score_case(const LoadedTrainingCase& loaded, const StepPredictor& predict) {
  SourceScore score{.name = loaded.item.source, .generation = loaded.item.generation};
  for (const TrainingCaseRow& row : loaded.rows) {
    ++score.status[row.status];
    for (const std::string& field : row.missing) {
      ++score.missing[field];
    }
    if (!row.run || !predict) {
      score.unscored.push_back({.id = row.id, .status = row.status, .reason = reason_of(row)});
      continue;
    }
    try {
      const PredictedStep predicted = predict(loaded.item, *row.run);
      CHECK(predicted.seconds > 0.0, "a predicted step takes time");
      score.steps.push_back({.id = row.id,
                             .has_experts = row.run->has_experts(),
                             .has_adapters = row.run->model.adapters.has_value(),
                             .waits_for_host = predicted.waits_for_host,
                             .measured_s = row.run->measured_s,
                             .predicted_s = predicted.seconds});
    } catch (const ConfigError& error) {
      score.unscored.push_back({.id = row.id, .status = row.status, .reason = error.what()});
    }
  }
  return score;
}

TrainingScore score_of(std::vector<SourceScore> cases) {
  std::map<std::pair<std::string, std::string>, SourceScore> merged;
  for (SourceScore& one : cases) {
    SourceScore& source = merged[{one.name, one.generation}];
    source.name = one.name;
    source.generation = one.generation;
    source.is_measured = source.is_measured && one.is_measured;
    merge(one.status, source.status);
    merge(one.missing, source.missing);
    std::move(one.steps.begin(), one.steps.end(), std::back_inserter(source.steps));
    std::move(one.unscored.begin(), one.unscored.end(), std::back_inserter(source.unscored));
  }
  TrainingScore score;
  for (auto& [key, source] : merged) {
    source.dense = errors_of(source.steps, false);
    source.experts = errors_of(source.steps, true);
    score.sources.push_back(std::move(source));
  }
  for (const SourceScore& source : score.sources) {
    if (source.is_measured) {
      add(score.dense, source.dense);
      add(score.experts, source.experts);
    }
    add(score.dense_by_generation[source.generation], source.dense);
    add(score.experts_by_generation[source.generation], source.experts);
    merge(source.status, score.status);
    merge(source.missing, score.missing);
  }
  divide(score.dense);
  divide(score.experts);
  for (auto* const means : {&score.dense_by_generation, &score.experts_by_generation}) {
    for (auto& [generation, mean] : *means) {
      divide(mean);
    }
  }
  return score;
}

void add_memory_score(const std::filesystem::path& folder, TrainingScore& score) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const MemoryMeasurements table = load_memory_measurements(file);
    std::vector<ScoredStep> rows;
    for (const MeasuredMemory& row : table.rows) {
      const Bytes predicted = predicted_memory(row, table.level);
      rows.push_back({.id = row.id,
                      .measured_s = static_cast<double>(row.measured.count()),
                      .predicted_s = static_cast<double>(predicted.count())});
    }
    const StepErrors errors = step_errors(rows);
    score.memory_sources.push_back(
        {.name = file.stem().string(), .errors = errors, .rows = std::move(rows)});
    add(score.memory, errors);
  }
  divide(score.memory);
}

std::size_t TrainingScore::rows() const {
  std::size_t count = 0;
  for (const auto& [row_status, rows_of_it] : status) {
    count += rows_of_it;
  }
  return count;
}

std::size_t TrainingScore::with_plan() const {
  const auto count = [&](TrainingRowStatus one) {
    const auto found = status.find(one);
    return found == status.end() ? std::size_t{0} : found->second;
  };
  return count(TrainingRowStatus::Complete) + count(TrainingRowStatus::Assumed);
}

std::size_t TrainingScore::predicted() const {
  std::size_t count = 0;
  for (const SourceScore& source : sources) {
    count += source.steps.size();
  }
  return count;
}

TrainingScore out_of_source_score(std::span<const LoadedTrainingCase> cases, const StepFit& fit) {
  std::set<std::string> generations;
  for (const LoadedTrainingCase& one : cases) {
    generations.insert(one.item.generation);
  }
  std::vector<SourceScore> sources;
  for (const std::string& generation : generations) {
    std::array<std::vector<const LoadedTrainingCase*>, 2> halves;
    for (const LoadedTrainingCase& one : cases) {
      if (one.item.generation == generation && one.item.half != TrainingHalf::None) {
        halves.at(one.item.half == TrainingHalf::A ? 0 : 1).push_back(&one);
      }
    }
    if (halves[0].empty() || halves[1].empty()) {
      continue;
    }
    for (std::size_t half = 0; half < 2; ++half) {
      const StepPredictor predict = fit(halves.at(1 - half));
      for (const LoadedTrainingCase* const one : halves.at(half)) {
        sources.push_back(score_case(*one, predict));
      }
    }
  }
  return score_of(std::move(sources));
}

}  // namespace trainyard
