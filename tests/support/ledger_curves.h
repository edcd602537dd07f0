// SPDX-License-Identifier: Apache-2.0
// validation/ledger.csv: how far off foreseen times were, one curve over the sizes for each table.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "calibration/doctor/doctor_model.h"
#include "calibration/fit/intervals.h"
#include "calibration/fit/ledger.h"
#include "support/paths.h"

namespace trainyard {

struct LedgerCurve {
  std::string name;
  std::string system;
  std::string family;  // As in error_model().
  std::vector<LogPoint> points;
  std::vector<double> residuals;  // ln(measured / foreseen).

  // At another size: on the line between its neighbours, and flat beyond the ends.
  [[nodiscard]] double at(Bytes size) const {
    const auto log_size = [](Bytes of) { return std::log2(static_cast<double>(of.count())); };
    for (std::size_t index = 0; index < points.size(); ++index) {
      if (size <= points[index].size) {
        if (index == 0) {
          return residuals[0];
        }
        const double from = log_size(points[index - 1].size);
        const double share = (log_size(size) - from) / (log_size(points[index].size) - from);
        return residuals[index - 1] + share * (residuals[index] - residuals[index - 1]);
      }
    }
    return residuals.back();
  }

  // Of its rows in the regime of this size, or of all if there are none.
  [[nodiscard]] double mean_like(Bytes size) const {
    double sum = 0.0;
    double all = 0.0;
    int count = 0;
    for (std::size_t index = 0; index < points.size(); ++index) {
      all += residuals[index];
      if (regime_of(points[index].size) == regime_of(size)) {
        sum += residuals[index];
        ++count;
      }
    }
    return count > 0 ? sum / count : all / static_cast<double>(points.size());
  }
};

// All rows, with the digits that the file has.
inline std::vector<LedgerRow> ledger_rows() {
  std::ifstream file(source_dir() / "validation/ledger.csv");
  std::vector<LedgerRow> rows;
  std::string line;
  std::getline(file, line);  // The keys.
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) {
      cells.push_back(cell);
    }
    const auto time = [&](std::size_t cell) {
      return SimTime(std::llround(std::stod(cells[cell]) * 1e6));
    };
    LedgerRow& row = rows.emplace_back();
    row.name = cells[0];
    row.system_class = cells[1];
    row.system = cells[2];
    row.machine = {.gpu = cells[3], .scale_up = cells[4], .network = cells[5]};
    row.operation = parse_operation(cells[6]).value();
    row.size = Bytes(std::stoll(cells[7]));
    row.measured = time(8);
    row.predicted = time(9);
    row.foreseen = time(10);
    row.is_alone = cells[14] == "true";
  }
  return rows;
}

inline std::vector<LedgerCurve> ledger_curves() {
  std::vector<LedgerCurve> curves;
  for (const LedgerRow& row : ledger_rows()) {
    if (curves.empty() || curves.back().name != row.name) {
      curves.push_back({.name = row.name,
                        .system = row.system,
                        .family = row.is_alone ? std::string(kUnlikeAny) : family_of(row.machine),
                        .points = {},
                        .residuals = {}});
    }
    curves.back().points.push_back({.run = 0, .size = row.size});
    curves.back().residuals.push_back(row.surprise());
  }
  return curves;
}

}  // namespace trainyard
