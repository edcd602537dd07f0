// SPDX-License-Identifier: Apache-2.0
// Matching by size, and error summaries.
#include "calibration/measured/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainyard {
namespace {

// The smallest value that at least `share` of the values do not exceed.
double nearest_rank(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

RegimeError regime_error(std::vector<double> errors) {
  if (errors.empty()) {
    return {};
  }
  std::sort(errors.begin(), errors.end());
  return {
      .rows = errors.size(), .median = nearest_rank(errors, 0.5), .p90 = nearest_rank(errors, 0.9)};
}

const MeasuredRow* find_row(const MeasuredTable& table, Bytes size) {
  std::vector<const MeasuredRow*> found;
  for (const MeasuredRow& row : table.rows) {
    if (row.size == size) {
      found.push_back(&row);
    }
  }
  if (found.empty()) {
    return nullptr;
  }
  std::ranges::stable_sort(found, {}, &MeasuredRow::time);
  return found[(found.size() - 1) / 2];
}

ComparisonSummary summarise(std::span<const RowComparison> rows) {
  ComparisonSummary summary;
  std::vector<double> small;
  std::vector<double> large;
  for (const RowComparison& row : rows) {
    const double error = std::abs(std::log(row.predicted / row.measured));
    (row.size < kSmallMessageLimit ? small : large).push_back(error);
    if (!summary.largest || row.size > summary.largest->size) {
      summary.largest = row;
    }
  }
  summary.small = regime_error(std::move(small));
  summary.large = regime_error(std::move(large));
  return summary;
}

}  // namespace trainyard
