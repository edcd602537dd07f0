// SPDX-License-Identifier: Apache-2.0
// Rates of kernels (configs/hardware/gpu-rates.yaml) fitted to what the harness measured on one GPU
// (docs/commands/calibrate.md). Kernels that ran alone: what a training step adds to them, other
// kernels beside them and a host that is late, is in no measurement set.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calibration/machine/profile_calibration.h"
#include "calibration/machine/rate_rows.h"
#include "calibration/solver/constant_fit.h"
#include "hw/parts/catalogue.h"
#include "parallelism/workload/gpu_rates.h"

namespace trainyard {

struct RateCalibration {
  std::string gpu;  // GPU of the catalogue.
  std::vector<FittedConstant> rates;
  std::vector<RateTable> tables;
  ConstantFit fit;       // Its tables are those above, row by row.
  std::string document;  // YAML that GpuRates reads.

  // Returns the error of the rows of one use of all tables, or of the one with this number.
  [[nodiscard]] CalibrationError error(RowUse use,
                                       std::optional<std::size_t> table = std::nullopt) const;
};

// `shipped` is gpu-rates.yaml, `origin` what is written as the source: files and GPU. There must be
// a row. Throws ConfigError for a GPU without rates.
[[nodiscard]] RateCalibration calibrate_rates(std::vector<RateTable> tables, const GpuModel& gpu,
                                              const std::filesystem::path& shipped,
                                              const std::string& origin,
                                              const ConstantFitOptions& options,
                                              const TaskRunner& run_tasks);

}  // namespace trainyard
