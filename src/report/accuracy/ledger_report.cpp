// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy/ledger_report.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "calibration/fit/intervals.h"
#include "calibration/measured/comparison.h"
#include "report/formats/log_percent.h"

namespace trainyard {
namespace {

// Rounds because more digits have no meaning here, and would change with every constant.
Cell rounded_microseconds(SimTime time) {
  const std::string text = fmt::format("{:.2f}", time.microseconds());
  return {text, std::stod(text)};
}

struct ClassErrors {
  std::set<std::string> systems;
  std::array<std::vector<double>, kSizeRegimes.size()> errors = {};  // |ln|, by regime.
};

}  // namespace

std::string ledger_csv(std::span<const LedgerRow> ledger) {
  Table table(key_columns({"case", "class", "system", "gpu", "scale_up", "network", "operation",
                           "size_bytes", "measured_us", "predicted_us", "foreseen_us", "low_us",
                           "high_us", "inside", "alone"}));
  const IntervalsOfOthers intervals(ledger);
  for (const LedgerRow& row : ledger) {
    const TimeInterval interval = intervals.of(row);
    table.add_row({Cell::of(row.name), Cell::of(row.system_class), Cell::of(row.system),
                   Cell::of(row.machine.gpu), Cell::of(row.machine.scale_up),
                   Cell::of(row.machine.network), Cell::of(to_string(row.operation)),
                   Cell::of(row.size.count()), rounded_microseconds(row.measured),
                   rounded_microseconds(row.predicted), rounded_microseconds(row.foreseen),
                   rounded_microseconds(interval.low), rounded_microseconds(interval.high),
                   Cell::yes_no(interval.holds(row.measured)), Cell::yes_no(row.is_alone)});
  }
  return render_csv(table);
}

Table coverage_table(std::span<const LedgerRow> ledger) {
  std::map<std::string, ClassErrors> classes;
  for (const LedgerRow& row : ledger) {
    for (const std::string& group : {row.system_class, std::string("all")}) {
      classes[group].systems.insert(row.system);
      classes[group].errors[static_cast<std::size_t>(regime_of(row.size))].push_back(
          std::abs(row.surprise()));
    }
  }
  const std::map<std::string, Coverage> coverage = coverage_of(ledger);
  Table table({column("class", "class", Align::Left), column("systems", "systems"),
               column("rows", "rows"), column("below 64 KiB", "below_64_kib"),
               column("below 16 MiB", "below_16_mib"), column("above", "above"),
               column("in the interval", "in_interval")});
  for (auto& [name, of] : classes) {
    const Coverage& covered = coverage.at(name);
    std::vector<Cell> cells{Cell::of(name), Cell::count(of.systems.size()),
                            Cell::count(covered.rows)};
    for (const std::vector<double>& errors : of.errors) {
      cells.push_back(error_cell(!errors.empty(), regime_error(errors).median));
    }
    cells.push_back({fmt::format("{:.0f} %", 100.0 * covered.share()), covered.share()});
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace trainyard
