// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/validation.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Two times of one row that differ by more than this are not both right.
constexpr double kColumnsApart = 1.25;

double ratio(SimTime one, SimTime other) {
  return one > other ? one / other : other / one;
}

ValidationRow measured_row(const MeasuredRow& row, const ValidationCase& item) {
  ValidationRow result;
  result.size = row.size;
  result.measured = row.time;
  if (const std::string* const reason = item.exclusion(row.size)) {
    result.excluded = *reason;
  }
  if (!row.in_place) {
    return result;
  }
  const SimTime in_place = row.in_place->time;
  result.columns_apart = ratio(in_place, row.time) > kColumnsApart;
  const bool by_size = result.columns_apart && !item.one_row_per_doubling;
  const bool take_in_place = by_size ? in_place < row.time : item.in_place;
  if (take_in_place) {
    result.measured = in_place;
    result.in_place = true;
  }
  return result;
}

double time_per_byte(const ValidationRow& row) {
  return row.measured.seconds() / static_cast<double>(row.size.count());
}

// Returns, of the rows whose sizes round to the same power of two, that with the median time per
// byte.
std::vector<ValidationRow> one_per_doubling(const std::vector<ValidationRow>& rows) {
  std::map<long, std::vector<ValidationRow>> groups;
  for (const ValidationRow& row : rows) {
    groups[std::lround(std::log2(static_cast<double>(row.size.count())))].push_back(row);
  }
  std::vector<ValidationRow> kept;
  for (auto& [exponent, group] : groups) {
    std::ranges::stable_sort(group, {}, time_per_byte);
    kept.push_back(group[(group.size() - 1) / 2]);
    kept.back().stands_for = static_cast<int>(group.size());
  }
  return kept;
}

bool is_large(Bytes size) {
  return size >= kSmallMessageLimit;
}

std::optional<double> noise_of(const MeasuredTable& table) {
  std::vector<double> differences;
  for (const MeasuredRow& row : table.rows) {
    if (row.in_place && is_large(row.size)) {
      differences.push_back(std::log(ratio(row.in_place->time, row.time)));
    }
  }
  if (differences.empty()) {
    return std::nullopt;
  }
  return regime_error(std::move(differences)).median;
}

double mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return values.empty() ? 0.0 : sum / static_cast<double>(values.size());
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& value : values) {
    value = std::abs(value);
  }
  return values;
}

std::optional<std::size_t> worst_of(const std::vector<ValidationRow>& rows) {
  std::optional<std::size_t> worst;
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const bool counts = rows[index].excluded.empty() && rows[index].predicted;
    if (counts &&
        (!worst || std::abs(rows[index].log_ratio()) > std::abs(rows[*worst].log_ratio()))) {
      worst = index;
    }
  }
  return worst;
}

void predict_rows(CaseResult& result, const Catalogue& catalogue, const Predictor& predict) {
  const ValidationCase& item = result.item;
  const Cluster cluster = cluster_of(item, catalogue);
  std::vector<Bytes> sizes;
  for (const ValidationRow& row : result.rows) {
    sizes.push_back(row.size);
  }
  std::vector<PredictedTime> times = predict(item, cluster, result.operation, sizes);
  CHECK(times.size() == sizes.size(), "a predictor must give one time for each size");
  for (std::size_t index = 0; index < times.size(); ++index) {
    CHECK(times[index].time > SimTime(), "a predicted time must be positive");
    result.rows[index].predicted = std::move(times[index]);
  }
}

// Returns where a size belongs in kSizeRanges.
std::size_t range_of(Bytes size) {
  std::size_t range = 0;
  while (range + 1 < kSizeRanges.size() && kSizeRanges[range + 1] <= size) {
    ++range;
  }
  return range;
}

std::vector<SizeRange> errors_by_size(const std::vector<ValidationRow>& rows) {
  std::vector<std::vector<double>> ratios(kSizeRanges.size());
  for (const ValidationRow& row : rows) {
    if (row.predicted && row.excluded.empty()) {
      ratios[range_of(row.size)].push_back(row.log_ratio());
    }
  }
  std::vector<SizeRange> ranges;
  for (std::size_t range = 0; range < kSizeRanges.size(); ++range) {
    ranges.push_back({.from = kSizeRanges[range],
                      .error = regime_error(magnitudes(ratios[range])),
                      .bias = mean(ratios[range])});
  }
  return ranges;
}

struct Regime {
  std::vector<double> medians;
  std::vector<double> p90s;
  std::vector<double> biases;

  void add(const RegimeError& error, double bias) {
    if (error.rows > 0) {
      medians.push_back(error.median);
      p90s.push_back(error.p90);
      biases.push_back(bias);
    }
  }
  [[nodiscard]] TableFigures figures() const {
    return {.tables = medians.size(),
            .median = regime_error(medians).median,
            .p90 = regime_error(p90s).median,
            .bias = mean(biases)};
  }
};

}  // namespace

double ValidationRow::log_ratio() const {
  CHECK(predicted.has_value(), "a row without a prediction has no error");
  return std::log(predicted->time / measured);
}

ErrorFigures error_figures(std::span<const ValidationRow> rows, CountedRows counted) {
  std::vector<double> large;
  std::vector<double> small;
  for (const ValidationRow& row : rows) {
    if (row.predicted && (counted == CountedRows::Every || row.excluded.empty())) {
      (is_large(row.size) ? large : small).push_back(row.log_ratio());
    }
  }
  return {.large = regime_error(magnitudes(large)),
          .small = regime_error(magnitudes(small)),
          .bias_large = mean(large),
          .bias_small = mean(small)};
}

std::vector<ValidationRow> validation_rows(const LoadedCase& loaded) {
  std::vector<ValidationRow> rows;
  for (const MeasuredRow& row : loaded.table.rows) {
    // A size that was measured several times counts once, with its median row.
    if (find_row(loaded.table, row.size) == &row) {
      rows.push_back(measured_row(row, loaded.item));
    }
  }
  return loaded.item.one_row_per_doubling ? one_per_doubling(rows) : rows;
}

Cluster cluster_of(const ValidationCase& item, const Catalogue& catalogue) {
  Cluster cluster = load_cluster(item.cluster, catalogue, item.overrides());
  if (static_cast<int>(cluster.gpus.size()) != item.ranks) {
    throw ConfigError(fmt::format("expected a cluster of {} GPUs, found {} in {}", item.ranks,
                                  cluster.gpus.size(), item.cluster.string()));
  }
  return cluster;
}

CaseResult run_case(const LoadedCase& loaded, const Catalogue& catalogue,
                    const Predictor& predict) {
  CaseResult result;
  result.item = loaded.item;
  result.operation = loaded.operation;
  result.rows = validation_rows(loaded);
  result.noise = noise_of(loaded.table);
  if (loaded.item.not_covered) {
    result.not_covered = *loaded.item.not_covered;
    return result;
  }
  try {
    predict_rows(result, catalogue, predict);
  } catch (const ConfigError& error) {
    result.not_covered = error.what();
    return result;
  }
  result.errors = error_figures(result.rows, CountedRows::Counted);
  result.worst = worst_of(result.rows);
  return result;
}

GroupResult group_of(std::string name, std::span<const CaseResult* const> cases) {
  GroupResult group;
  group.name = std::move(name);
  Regime large;
  Regime small;
  std::vector<ValidationRow> rows;
  for (const CaseResult* const one : cases) {
    ++group.cases;
    rows.insert(rows.end(), one->rows.begin(), one->rows.end());
    group.covered += one->not_covered.empty() ? 1 : 0;
    if (one->worst) {
      ++group.scored;
      large.add(one->errors.large, one->errors.bias_large);
      small.add(one->errors.small, one->errors.bias_small);
    }
  }
  group.large = large.figures();
  group.small = small.figures();
  group.rows = error_figures(rows, CountedRows::Counted);
  group.every_row = error_figures(rows, CountedRows::Every);
  group.by_size = errors_by_size(rows);
  for (const ValidationRow& row : rows) {
    group.excluded += row.excluded.empty() ? 0U : 1U;
  }
  return group;
}

Validation validation_of(std::vector<CaseResult> cases) {
  Validation validation;
  validation.cases = std::move(cases);
  std::map<std::string, std::vector<const CaseResult*>> classes;
  std::vector<const CaseResult*> all;
  for (const CaseResult& one : validation.cases) {
    classes[one.item.system_class].push_back(&one);
    all.push_back(&one);
  }
  for (const auto& [name, members] : classes) {
    validation.classes.push_back(group_of(name, members));
  }
  validation.all = group_of("all", all);
  return validation;
}

}  // namespace trainyard
