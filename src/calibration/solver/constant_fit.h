// SPDX-License-Identifier: Apache-2.0
// The constants of a model that measurements of one machine determine, with their intervals
// (docs/commands/calibrate.md has the equations).
//
// Unlike robust_fit.h on its own, which weighs tables of many machines, every row counts by itself
// here, starts are the values that are shipped, and a constant is either determined by the rows or
// stays what it was:
//
//   1. all constants are fitted at once, with a prior around what is shipped; rows that are then
//      far from everything else are outliers and no longer count;
//   2. of the constants that the slopes and misfits of the rows leave too open, the one that is
//      known least goes back to what is shipped, until all that are left are known well enough
//      with these as shipped; they are fitted again;
//   3. the interval of each holds as well what those that went back may be off by.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/solver/robust_fit.h"

namespace trainyard {

struct ConstantFitOptions {
  // The widest 90 % interval, greatest over least, of a constant that is determined, if those that
  // are not are as shipped.
  double widest = 2.0;
  // Rows that must move with it.
  std::size_t min_rows = 3;
  bool all_rows = false;  // Fit to rows that are marked to be kept out as well.
};

// A constant; all values are ln(constant).
struct ConstantEstimate {
  bool is_determined = false;
  double value = 0.0;           // As shipped, if it is not determined.
  double standard_error = 0.0;  // With what others that are not determined may be off by.
  std::size_t rows = 0;         // Number of rows that were fitted to and move with it.
  std::vector<std::string> tables = {};
  std::string reason = {};  // Why it is not determined.
  // The undetermined constant that its standard error is mostly from; often none.
  std::string rests_on = {};
};

enum class RowUse { Fitted, KeptOut, Outlier };

struct EstimatedRow {
  RowUse use = RowUse::Fitted;
  double shipped = 0.0;  // Misfit with the constants as shipped,
  double fitted = 0.0;   // and with the result: ln(predicted / measured).
};

struct ConstantFit {
  std::vector<ConstantEstimate> constants;
  std::vector<std::vector<EstimatedRow>> tables;
  double noise = 0.0;          // Standard deviation of the misfits of rows that count.
  double design = 1.0;         // How many rows in a row say what one would (they are off together).
  std::size_t moving = 0;      // Constants that any row moves with.
  std::size_t rank = 0;        // How many combinations of them the rows show.
  bool many_outliers = false;  // So many that they count: the model is off, not the rows.
  bool converged = false;
};

// A constant of a file, as shipped and as fitted.
struct FittedConstant {
  std::string name;      // Its key in the file: "shared.send", "hopper.gemm".
  bool is_time = false;  // In seconds; otherwise a rate, a share or a number.
  double shipped = 0.0;
  double value = 0.0;  // As shipped, if it is not fitted.
  double low = 0.0;    // Lower end of the 90 % interval of what is fitted.
  double high = 0.0;
  bool is_fitted = false;
  std::size_t rows = 0;
  std::string reason = {};  // Why it is not fitted.
};
// The interval is cut off at `min` and `max`.
[[nodiscard]] FittedConstant fitted_constant(std::string name, bool is_time, double shipped,
                                             const ConstantEstimate& estimate, double min,
                                             double max);

// `kept_out` has a mark for each row of each table. There must be a row that is fitted to.
[[nodiscard]] ConstantFit fit_constants(FitModel& model,
                                        const std::vector<FitParameter>& parameters,
                                        const std::vector<FitTable>& tables,
                                        const std::vector<std::vector<bool>>& kept_out,
                                        const ConstantFitOptions& options,
                                        const TaskRunner& run_tasks);

}  // namespace trainyard
