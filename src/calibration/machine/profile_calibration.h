// SPDX-License-Identifier: Apache-2.0
// A profile of NCCL for one machine: the constants of the shipped one that measured tables of that
// machine determine, fitted to them (docs/commands/calibrate.md).
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calibration/measured/measurement.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/solver/constant_fit.h"
#include "collectives/schedule/operation.h"
#include "hw/parts/catalogue.h"
#include "nccl/timing/profile.h"
#include "sim/units.h"

namespace trainyard {

// A table of one operation, and how NCCL was run for it.
struct CalibrationTable {
  std::string file;     // As the user names it.
  MeasuredTable table;  // Sizes in rising order, each once.
  // NCCL's variables beside those of the request: what was forced.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string part = {};  // Part of the file, where it holds many: "nccl.processes.default".
  std::optional<std::string> nccl_version = {};  // Otherwise that of the request.
};

struct CalibrationRequest {
  std::vector<CalibrationTable> tables;
  std::filesystem::path cluster;
  std::string cluster_name;                 // As the user names it.
  std::vector<std::string> settings;        // As --set takes them.
  std::optional<int> nodes = {};            // Nodes of tables that do not say it.
  std::optional<Operation> operation = {};  // The same.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::optional<std::string> nccl_version = {};
  std::optional<int> gpus_per_process = {};  // Otherwise what the log says, or one.
  ConstantFitOptions fit = {};
};

// "measured": fitted here. "cited": was measured elsewhere or is NCCL's own. "guess": an estimate.
enum class ConstantMark { Measured, Cited, Guess };
[[nodiscard]] std::string_view to_string(ConstantMark mark);

struct CalibratedConstant {
  ProfileConstant constant;
  ConstantMark mark = ConstantMark::Guess;
  double value = 0.0;  // In the unit of the constant; that of the file if it is not fitted.
  double low = 0.0;    // Lower end of the 90 % interval of what is fitted.
  double high = 0.0;
  std::size_t rows = 0;
  std::vector<std::string> files = {};
  std::string reason = {};  // Why it is not fitted.
  // The origin of most of its interval, for constants that are not fitted.
  std::string rests_on = {};
};

struct CalibratedRow {
  Bytes size;
  std::size_t line = 0;  // Line of the file; 0: none.
  SimTime measured;
  SimTime shipped = {};  // Predicted with the constants as shipped,
  SimTime fitted = {};   // and with the result as it is written.
  RowUse use = RowUse::Fitted;
};

struct CalibratedTable {
  std::string file;
  std::string part = {};
  Operation operation = Operation::AllReduce;
  int ranks = 0;
  bool kept_out = false;  // The whole operation.
  std::vector<CalibratedRow> rows;
};

// Errors |ln(predicted / measured)| of some rows, by nearest rank.
struct CalibrationError {
  std::size_t rows = 0;
  double median_shipped = 0.0;
  double p90_shipped = 0.0;
  double median_fitted = 0.0;
  double p90_fitted = 0.0;
};
// Errors of rows with these ln(predicted / measured), signed.
[[nodiscard]] CalibrationError calibration_error(std::span<const EstimatedRow> rows);
[[nodiscard]] CalibrationError error_of(std::span<const CalibratedTable> tables, RowUse use);

struct ProfileCalibration {
  std::vector<CalibratedConstant> constants;  // All, in the order of the profile.
  std::vector<CalibratedTable> tables;
  ConstantFit fit;
  nccl::ProfileBasis basis;
  std::string profile;                // The YAML document.
  std::vector<std::string> warnings;  // Tables that are left out, outliers.
};

// Marks the third of each four of so many rows, but never the last, so that what is left reaches as
// far.
[[nodiscard]] std::vector<bool> third_of_four(std::size_t rows);
// Returns which rows are not fitted to: of each table the third of each four, in rising order of
// sizes; of three or more collectives all tables of the one whose name is last.
[[nodiscard]] std::vector<std::vector<bool>> kept_out_rows(std::span<const CalibratedTable> tables);

// Throws ConfigError where no table can be used.
[[nodiscard]] ProfileCalibration calibrate_profile(const CalibrationRequest& request,
                                                   const ProfileConstants& constants,
                                                   const Catalogue& catalogue,
                                                   const TaskRunner& run_tasks);

}  // namespace trainyard
