// SPDX-License-Identifier: Apache-2.0
#include "calibration/measured/measured_damage.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "calibration/measured/comparison.h"

namespace trainyard {
namespace {

// Range that printed digits leave open: nccl-tests prints three to five of a time and two decimals
// of a bandwidth.
constexpr double kDigits = 0.02;
constexpr double kDecimals = 0.006;

std::string place(const std::string& name, const MeasuredRow& row) {
  return row.line == 0 ? name : fmt::format("{}:{}", name, row.line);
}

double algbw_of(const MeasuredRow& row) {
  return static_cast<double>(row.size.count()) / row.time.seconds() / 1e9;
}

bool contradicts_itself(const MeasuredRow& row) {
  return std::abs(algbw_of(row) - row.algbw_gbps) > kDecimals + kDigits * row.algbw_gbps;
}

void drop_contradictions(MeasuredTable& table, const std::string& name,
                         std::vector<std::string>& warnings) {
  const auto wrong = static_cast<std::size_t>(
      std::count_if(table.rows.begin(), table.rows.end(), contradicts_itself));
  if (2 * wrong >= table.rows.size()) {
    return;  // A remark of the table says so.
  }
  std::erase_if(table.rows, [&](const MeasuredRow& row) {
    if (!contradicts_itself(row)) {
      return false;
    }
    warnings.push_back(fmt::format(
        "{}: left out: expected {:.2f} GB/s of {} B in {:.2f} us, found {:.2f}", place(name, row),
        algbw_of(row), row.size.count(), row.time.microseconds(), row.algbw_gbps));
    return true;
  });
}

void drop_repeated(MeasuredTable& table, const std::string& name,
                   std::vector<std::string>& warnings) {
  std::vector<MeasuredRow> kept;
  for (const MeasuredRow& row : table.rows) {
    const MeasuredRow* const median = find_row(table, row.size);
    if (median == &row) {
      kept.push_back(row);
    } else {
      warnings.push_back(fmt::format(
          "{}: left out: {} B is there again, {} has the median time", place(name, row),
          row.size.count(),
          median->line == 0 ? std::string("another row") : fmt::format("line {}", median->line)));
    }
  }
  table.rows = std::move(kept);
}

void sort_by_size(MeasuredTable& table, const std::string& name,
                  std::vector<std::string>& warnings) {
  const auto first = std::ranges::is_sorted_until(table.rows, {}, &MeasuredRow::size);
  if (first != table.rows.end()) {
    warnings.push_back(fmt::format("{}: the rows are not in the order of their sizes: sorted",
                                   place(name, *first)));
    std::ranges::stable_sort(table.rows, {}, &MeasuredRow::size);
  }
}

}  // namespace

void repair(MeasuredTable& table, const std::string& name, std::vector<std::string>& warnings) {
  drop_contradictions(table, name, warnings);
  drop_repeated(table, name, warnings);
  sort_by_size(table, name, warnings);
}

}  // namespace trainyard
