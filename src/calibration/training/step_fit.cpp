// SPDX-License-Identifier: Apache-2.0
// Ceres brings a CHECK of its own: sim/check.h may not be included here.
#include "calibration/training/step_fit.h"

#include <ceres/cost_function.h>
#include <ceres/problem.h>
#include <ceres/solver.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr double kScale = 0.05;        // Limit of a misfit: below, it counts by its square.
constexpr double kStep = 0.01;         // Step of ln(constant), for slopes.
constexpr double kMoves = 0.05;        // Slopes below are none.
constexpr double kReach = 4.0;         // Spreads that a constant may go from its start.
constexpr std::size_t kMaxRows = 100;  // Rows of a source.

struct FittedRow {
  const TrainingCase* item = nullptr;
  const TrainingRun* run = nullptr;
  double weight = 0.0;
};

std::vector<FittedRow> rows_of(std::span<const LoadedTrainingCase* const> cases) {
  std::map<std::pair<std::string, bool>, std::vector<FittedRow>> sources;
  for (const LoadedTrainingCase* const one : cases) {
    for (const TrainingCaseRow& row : one->rows) {
      if (row.run) {
        sources[{one->item.source, row.run->has_experts()}].push_back(
            {.item = &one->item, .run = &*row.run});
      }
    }
  }
  std::vector<FittedRow> rows;
  for (const auto& [name, all] : sources) {
    const std::size_t count = std::min(all.size(), kMaxRows);
    for (std::size_t index = 0; index < count; ++index) {
      rows.push_back(all[index * all.size() / count]);
      rows.back().weight = 1.0 / static_cast<double>(count);
    }
  }
  return rows;
}

// Misfits of all rows at points of ln(constants).
class Misfits {
 public:
  Misfits(std::vector<FittedRow> rows, const StepPriors& priors, CasePredictions& predictions,
          const TaskRunner& run_tasks)
      : rows_(std::move(rows)), priors_(priors), predictions_(predictions), run_tasks_(run_tasks) {}

  [[nodiscard]] const std::vector<FittedRow>& rows() const { return rows_; }
  // Rows that cannot be predicted are left out.
  void drop_uncovered() {
    std::vector<double> found = at({}, {});
    std::size_t index = 0;
    std::erase_if(rows_, [&](const FittedRow&) { return std::isnan(found[index++]); });
  }
  [[nodiscard]] std::vector<double> at(std::span<const std::size_t> which,
                                       std::span<const double> point) const {
    std::vector<double> values;
    for (const double x : point) {
      values.push_back(std::exp(x));
    }
    const StepValues with = priors_.values(which, values);
    std::map<const TrainingCase*, std::vector<std::size_t>> by_case;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      by_case[rows_[row].item].push_back(row);
    }
    std::vector<std::span<const std::size_t>> tasks;
    for (const auto& [item, rows] : by_case) {
      tasks.emplace_back(rows);
    }
    std::vector<double> misfits(rows_.size());
    run_tasks_(tasks.size(), [&](std::size_t task) {
      for (const std::size_t row : tasks[task]) {
        misfits[row] = misfit(rows_[row], with);
      }
    });
    return misfits;
  }

 private:
  [[nodiscard]] double misfit(const FittedRow& row, const StepValues& with) const {
    try {
      return std::log(predictions_.predict(*row.item, *row.run, with).time.seconds() /
                      row.run->measured_s);
    } catch (const ConfigError&) {
      return std::nan("");
    }
  }

  std::vector<FittedRow> rows_;
  const StepPriors& priors_;
  CasePredictions& predictions_;
  const TaskRunner& run_tasks_;
};

// Residuals whose squares are the terms of the sum.
class StepCost : public ceres::CostFunction {
 public:
  StepCost(const Misfits& misfits, std::vector<std::size_t> which,
           std::span<const StepConstant> constants)
      : misfits_(misfits), which_(std::move(which)), constants_(constants) {
    set_num_residuals(static_cast<int>(misfits.rows().size() + which_.size()));
    mutable_parameter_block_sizes()->assign(1, static_cast<int>(which_.size()));
  }

  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    const std::vector<double> point(parameters[0], parameters[0] + which_.size());
    const std::vector<double> here = misfits_.at(which_, point);
    const std::size_t rows = here.size();
    const std::size_t width = which_.size();
    std::vector<double> slope_of(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      std::tie(residuals[row], slope_of[row]) = term(here[row], misfits_.rows()[row].weight);
    }
    for (std::size_t k = 0; k < width; ++k) {
      const StepConstant& constant = constants_[which_[k]];
      residuals[rows + k] = (point[k] - std::log(constant.start)) / std::log(constant.spread);
    }
    if (jacobians == nullptr || jacobians[0] == nullptr) {
      return true;
    }
    std::fill_n(jacobians[0], (rows + width) * width, 0.0);
    for (std::size_t k = 0; k < width; ++k) {
      std::vector<double> moved = point;
      moved[k] += kStep;
      const std::vector<double> there = misfits_.at(which_, moved);
      for (std::size_t row = 0; row < rows; ++row) {
        jacobians[0][row * width + k] = slope_of[row] * (there[row] - here[row]) / kStep;
      }
      jacobians[0][(rows + k) * width + k] = 1.0 / std::log(constants_[which_[k]].spread);
    }
    return true;
  }

 private:
  // The root of w rho(z) with the sign of the misfit, and its slope; z = (misfit / scale)^2 and
  // rho(z) = 2 (sqrt(1 + z) - 1).
  static std::pair<double, double> term(double misfit, double weight) {
    const double u = misfit / kScale;
    const double root = std::sqrt(1.0 + u * u);
    const double value = std::copysign(std::sqrt(2.0 * (root - 1.0)), u);
    const double slope = std::abs(u) < 1e-6 ? 1.0 : u / (root * value);
    return {std::sqrt(weight) * value, std::sqrt(weight) * slope / kScale};
  }

  const Misfits& misfits_;
  std::vector<std::size_t> which_;
  std::span<const StepConstant> constants_;
};

// Constants that move rows, and how many rows.
std::map<std::size_t, std::size_t> moving(const Misfits& misfits, const StepPriors& priors) {
  const std::vector<double> here = misfits.at({}, {});
  std::map<std::size_t, std::size_t> found;
  for (std::size_t k = 0; k < priors.all().size(); ++k) {
    const std::vector<std::size_t> which{k};
    const std::vector<double> point{std::log(priors.all()[k].in_file) + kStep};
    const std::vector<double> there = misfits.at(which, point);
    std::size_t rows = 0;
    bool any = false;
    for (std::size_t row = 0; row < here.size(); ++row) {
      const double slope = std::abs(there[row] - here[row]) / kStep;
      any = any || slope > 1e-6;
      rows += slope >= kMoves ? 1 : 0;
    }
    if (any) {
      found.emplace(k, rows);
    }
  }
  return found;
}

}  // namespace

StepTime CasePredictions::predict(const TrainingCase& item, const TrainingRun& run,
                                  const StepValues& values) {
  std::unique_lock all(mutex_);
  Guarded& one = cases_[item.name];
  if (!one.prediction) {
    one.prediction = std::make_unique<StepPrediction>(constants_, method_);
  }
  all.unlock();
  const std::lock_guard lock(one.mutex);
  return one.prediction->predict(item, run, values);
}

GenerationFit fit_steps(std::span<const LoadedTrainingCase* const> cases, const StepPriors& priors,
                        CasePredictions& predictions, const TaskRunner& run_tasks) {
  Misfits misfits(rows_of(cases), priors, predictions, run_tasks);
  misfits.drop_uncovered();
  GenerationFit fit;
  std::set<std::string> sources;
  for (const FittedRow& row : misfits.rows()) {
    fit.generation = row.item->generation;
    sources.insert(row.item->source);
  }
  fit.sources.assign(sources.begin(), sources.end());
  const std::map<std::size_t, std::size_t> found = moving(misfits, priors);
  std::vector<std::size_t> which;
  std::vector<double> point;
  for (const auto& [k, rows] : found) {
    which.push_back(k);
    point.push_back(std::log(priors.all()[k].start));
  }
  if (which.empty()) {
    return fit;
  }
  ceres::Problem problem;
  problem.AddResidualBlock(new StepCost(misfits, which, priors.all()), nullptr, point.data());
  for (std::size_t k = 0; k < which.size(); ++k) {
    const double reach = kReach * std::log(priors.all()[which[k]].spread);
    problem.SetParameterLowerBound(point.data(), static_cast<int>(k), point[k] - reach);
    problem.SetParameterUpperBound(point.data(), static_cast<int>(k), point[k] + reach);
  }
  ceres::Solver::Options options;
  options.linear_solver_type = ceres::DENSE_QR;
  options.max_num_iterations = 12;
  options.function_tolerance = 1e-3;
  options.logging_type = ceres::SILENT;
  options.num_threads = 1;
  options.max_num_line_search_step_size_iterations = 0;
  ceres::Solver::Summary summary;
  ceres::Solve(options, &problem, &summary);
  fit.cost_before = summary.initial_cost;
  fit.cost = summary.final_cost;
  for (std::size_t k = 0; k < which.size(); ++k) {
    fit.constants.push_back({.constant = priors.all()[which[k]],
                             .value = std::exp(point[k]),
                             .rows = found.at(which[k])});
  }
  return fit;
}

StepValues values_of(const GenerationFit& fit, const StepPriors& priors) {
  std::vector<std::size_t> which;
  std::vector<double> values;
  for (std::size_t k = 0; k < priors.all().size(); ++k) {
    const auto found = std::find_if(
        fit.constants.begin(), fit.constants.end(),
        [&](const FittedStepConstant& one) { return one.constant.name == priors.all()[k].name; });
    // Constants that no row of the fit shows keep what was assumed.
    which.push_back(k);
    values.push_back(found == fit.constants.end() ? priors.all()[k].start : found->value);
  }
  return priors.values(which, values);
}

}  // namespace trainyard
