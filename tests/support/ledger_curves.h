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

inline std::vector<LedgerCurve> ledger_curves() {
  std::ifstream file(source_dir() / "validation/ledger.csv");
  std::vector<LedgerCurve> curves;
  std::string line;
  std::getline(file, line);  // The keys.
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) {
      cells.push_back(cell);
    }
    constexpr std::size_t kName = 0;
    constexpr std::size_t kSystem = 2;
    constexpr std::size_t kGpu = 3;
    constexpr std::size_t kSize = 7;
    constexpr std::size_t kMeasured = 8;
    constexpr std::size_t kForeseen = 10;
    constexpr std::size_t kAlone = 14;
    if (curves.empty() || curves.back().name != cells[kName]) {
      const nccl::MachineKind machine{
          .gpu = cells[kGpu], .scale_up = cells[kGpu + 1], .network = cells[kGpu + 2]};
      curves.push_back(
          {.name = cells[kName],
           .system = cells[kSystem],
           .family = cells[kAlone] == "true" ? std::string(kUnlikeAny) : family_of(machine),
           .points = {},
           .residuals = {}});
    }
    curves.back().points.push_back({.run = 0, .size = Bytes(std::stoll(cells[kSize]))});
    curves.back().residuals.push_back(
        std::log(std::stod(cells[kMeasured]) / std::stod(cells[kForeseen])));
  }
  return curves;
}

}  // namespace trainyard
