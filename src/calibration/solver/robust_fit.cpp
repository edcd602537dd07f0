// SPDX-License-Identifier: Apache-2.0
// Ceres brings a CHECK of its own: sim/check.h may not be included here.
#include "calibration/solver/robust_fit.h"

#include <ceres/cost_function.h>
#include <ceres/covariance.h>
#include <ceres/evaluation_callback.h>
#include <ceres/loss_function.h>
#include <ceres/problem.h>
#include <ceres/solver.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "calibration/solver/fit_rows.h"

namespace trainyard {
namespace {

// A row moves with a constant if its time changes by this part of what the constant changes by.
constexpr double kMoves = 0.05;
// A round may go so far from the last, in ln(constant): beyond, little is known.
constexpr double kRoom = 1.5;
constexpr double kAnywhere = 100.0;
// Limit of the difference of the sum from what was expected, as a part of it.
constexpr double kGap = 0.005;

// The rows at a point: what a cost function looks up.
struct RowsAtPoint {
  std::vector<double> misfits;
  std::vector<std::vector<double>> derivatives;
};

class RowCost : public ceres::CostFunction {
 public:
  RowCost(const RowsAtPoint& rows, std::size_t row, std::size_t parameters, double scale)
      : rows_(rows), row_(row), scale_(scale) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->assign(parameters, 1);
  }
  bool Evaluate(const double* const* /*parameters*/, double* residuals,
                double** jacobians) const override {
    residuals[0] = rows_.misfits[row_] / scale_;
    const std::vector<double>& derivatives = rows_.derivatives[row_];
    for (std::size_t i = 0; jacobians != nullptr && i < derivatives.size(); ++i) {
      if (jacobians[i] != nullptr) {
        jacobians[i][0] = derivatives[i] / scale_;
      }
    }
    return true;
  }

 private:
  const RowsAtPoint& rows_;
  std::size_t row_;
  double scale_;
};

// (x - middle) / spread, with another parameter or a number in the middle.
class PriorCost : public ceres::CostFunction {
 public:
  explicit PriorCost(const FitParameter& parameter)
      : middle_(parameter.start), spread_(parameter.spread) {
    set_num_residuals(1);
    mutable_parameter_block_sizes()->assign(parameter.neighbour ? 2 : 1, 1);
  }
  bool Evaluate(const double* const* parameters, double* residuals,
                double** jacobians) const override {
    const bool tied = parameter_block_sizes().size() == 2;
    residuals[0] = (parameters[0][0] - (tied ? parameters[1][0] : middle_)) / spread_;
    for (std::size_t i = 0; jacobians != nullptr && i < parameter_block_sizes().size(); ++i) {
      if (jacobians[i] != nullptr) {
        jacobians[i][0] = (i == 0 ? 1.0 : -1.0) / spread_;
      }
    }
    return true;
  }

 private:
  double middle_;
  double spread_;
};

// Looks all rows up before Ceres asks for them one by one.
class AtOnce : public ceres::EvaluationCallback {
 public:
  AtOnce(const FitRows& rows, const std::vector<double>& point,
         const std::vector<std::size_t>& tables, RowsAtPoint& found)
      : rows_(rows), point_(point), numbers_(rows.rows_of(tables)), found_(found) {
    found_.misfits.resize(rows.rows().size());
    found_.derivatives.resize(rows.rows().size());
  }
  void PrepareForEvaluation(bool /*with_jacobians*/, bool is_new) override {
    if (is_new) {
      look_up();
    }
  }
  void look_up() {
    for (const std::size_t r : numbers_) {
      found_.misfits[r] =
          rows_.log_time(r, point_, found_.derivatives[r]) - rows_.rows()[r].log_measured;
    }
  }

 private:
  const FitRows& rows_;
  const std::vector<double>& point_;
  std::vector<std::size_t> numbers_;  // Numbers of the rows.
  RowsAtPoint& found_;
};

}  // namespace

struct RobustFit::State {
  State(FitModel& model, std::vector<FitParameter> parameters_in, std::vector<FitTable> tables_in,
        FitOptions options_in, TaskRunner run_tasks_in)
      : parameters(std::move(parameters_in)),
        tables(std::move(tables_in)),
        options(options_in),
        run_tasks(std::move(run_tasks_in)),
        rows(model, parameters, tables, run_tasks) {
    for (const FitRows::Row& row : rows.rows()) {
      weights.push_back(row.weight);
    }
  }

  std::vector<FitParameter> parameters;
  std::vector<FitTable> tables;
  FitOptions options;
  TaskRunner run_tasks;
  FitRows rows;
  std::vector<double> weights;  // Weights of rows.
  std::optional<Fit> all = {};  // To all tables.

  // A step of all rounds: the best point by what is known of the rows of these tables. Returns the
  // sums (robust_fit.h).
  double improve(std::vector<double>& point, const std::vector<std::size_t>& used, double room);
  [[nodiscard]] Fit solve(std::vector<double> point, const std::vector<std::size_t>& used);
  // The sums at a point by what is known, and their first part.
  [[nodiscard]] double sums(const std::vector<double>& point,
                            const std::vector<std::size_t>& used) const;
  [[nodiscard]] double misfits(const std::vector<double>& point,
                               const std::vector<std::size_t>& used) const;
  void finish(Fit& fit, const std::vector<double>& point, const std::vector<std::size_t>& used);
};

namespace {

// The sums of robust_fit.h as Ceres wants them. Points and rows must outlive it.
void add_priors(ceres::Problem& problem, const std::vector<FitParameter>& parameters,
                std::vector<double>& point) {
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    std::vector<double*> blocks{&point[k]};
    if (parameters[k].neighbour) {
      blocks.push_back(&point[*parameters[k].neighbour]);
    }
    problem.AddResidualBlock(new PriorCost(parameters[k]), nullptr, blocks);
  }
}

void add_rows(ceres::Problem& problem, const FitRows& rows, const std::vector<double>& weights,
              const std::vector<std::size_t>& used, const RowsAtPoint& found, double scale,
              std::vector<double>& point) {
  for (const std::size_t row : rows.rows_of(used)) {
    std::vector<double*> blocks;
    for (const std::uint32_t k : rows.rows()[row].parameters) {
      blocks.push_back(&point[k]);
    }
    if (!blocks.empty() && weights[row] > 0.0) {
      problem.AddResidualBlock(
          new RowCost(found, row, blocks.size(), scale),
          new ceres::ScaledLoss(new ceres::SoftLOneLoss(1.0), weights[row], ceres::TAKE_OWNERSHIP),
          blocks);
    }
  }
}

}  // namespace

double RobustFit::State::improve(std::vector<double>& point, const std::vector<std::size_t>& used,
                                 double room) {
  RowsAtPoint found;
  AtOnce at_once(rows, point, used, found);
  ceres::Problem::Options problem_options;
  problem_options.evaluation_callback = &at_once;
  ceres::Problem problem(problem_options);
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    problem.AddParameterBlock(&point[k], 1);
    problem.SetParameterLowerBound(&point[k], 0, std::max(parameters[k].min, point[k] - room));
    problem.SetParameterUpperBound(&point[k], 0, std::min(parameters[k].max, point[k] + room));
  }
  add_priors(problem, parameters, point);
  add_rows(problem, rows, weights, used, found, options.scale, point);
  ceres::Solver::Options solver;
  solver.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
  solver.max_num_iterations = 200;
  solver.function_tolerance = 1e-6;
  solver.parameter_tolerance = 1e-6;
  solver.use_nonmonotonic_steps = true;
  solver.max_num_line_search_step_size_iterations = 0;
  solver.logging_type = ceres::SILENT;
  solver.num_threads = 1;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  return summary.final_cost;
}

// Each round finds the best point by what is known, and learns there. What is known is a lower
// bound but for what is only known nearby: once the true sum is what was expected, no point within
// reach is known to be better.
Fit RobustFit::State::solve(std::vector<double> point, const std::vector<std::size_t>& used) {
  Fit fit;
  // Once the way of all tables is known, others can be gone in one step.
  const double room = all ? kAnywhere : kRoom;
  static_cast<void>(rows.learn(point, used));
  while (fit.rounds < options.max_rounds && !fit.converged) {
    ++fit.rounds;
    const std::vector<double> before = point;
    const double expected = improve(point, used, room);
    static_cast<void>(rows.learn(point, used));
    fit.cost = sums(point, used);
    bool within = true;
    for (std::size_t k = 0; k < point.size(); ++k) {
      within = within && std::abs(point[k] - before[k]) < room - 1e-6;
    }
    fit.converged = within && std::abs(fit.cost - expected) <= fit.cost * kGap;
  }
  finish(fit, point, used);
  return fit;
}

double RobustFit::State::sums(const std::vector<double>& point,
                              const std::vector<std::size_t>& used) const {
  double sum = 0.0;
  for (std::size_t k = 0; k < point.size(); ++k) {
    const std::optional<std::size_t>& tied = parameters[k].neighbour;
    const double middle = tied ? point[*tied] : parameters[k].start;
    sum += 0.5 * std::pow((point[k] - middle) / parameters[k].spread, 2);
  }
  return sum + misfits(point, used);
}

double RobustFit::State::misfits(const std::vector<double>& point,
                                 const std::vector<std::size_t>& used) const {
  double sum = 0.0;
  std::vector<double> derivatives;
  for (const std::size_t r : rows.rows_of(used)) {
    const double misfit = rows.log_time(r, point, derivatives) - rows.rows()[r].log_measured;
    const double z = std::pow(misfit / options.scale, 2);
    sum += weights[r] * (std::sqrt(1.0 + z) - 1.0);
  }
  return sum;
}

void RobustFit::State::finish(Fit& fit, const std::vector<double>& point,
                              const std::vector<std::size_t>& used) {
  std::vector<double> values = point;
  RowsAtPoint found;
  AtOnce at_once(rows, values, used, found);
  at_once.look_up();
  ceres::Problem problem;
  add_priors(problem, parameters, values);
  add_rows(problem, rows, weights, used, found, options.scale, values);
  std::vector<std::pair<const double*, const double*>> wanted;
  for (const double& value : values) {
    wanted.emplace_back(&value, &value);
  }
  ceres::Covariance::Options how;
  how.algorithm_type = ceres::DENSE_SVD;
  ceres::Covariance covariance(how);
  const bool known = options.standard_errors && covariance.Compute(wanted, &problem);
  const double misfit = 2.0 * misfits(point, used) / static_cast<double>(used.size());
  fit.parameters.resize(point.size());
  for (std::size_t k = 0; k < point.size(); ++k) {
    double variance = 0.0;
    if (known) {
      covariance.GetCovarianceBlock(&values[k], &values[k], &variance);
    }
    fit.parameters[k].value = point[k];
    fit.parameters[k].standard_error = std::sqrt(variance * std::max(1.0, misfit));
  }
  std::vector<std::set<std::string>> moved(point.size());
  std::vector<std::set<std::string>> systems(point.size());
  for (const std::size_t r : rows.rows_of(used)) {
    const FitTable& table = tables[rows.rows()[r].table];
    for (std::size_t i = 0; i < found.derivatives[r].size(); ++i) {
      if (weights[r] > 0.0 && std::abs(found.derivatives[r][i]) >= kMoves) {
        const std::uint32_t k = rows.rows()[r].parameters[i];
        ++fit.parameters[k].rows;
        moved[k].insert(table.name);
        systems[k].insert(table.system);
      }
    }
  }
  for (std::size_t k = 0; k < point.size(); ++k) {
    fit.parameters[k].tables.assign(moved[k].begin(), moved[k].end());
    fit.parameters[k].systems.assign(systems[k].begin(), systems[k].end());
  }
}

RobustFit::RobustFit(FitModel& model, std::vector<FitParameter> parameters,
                     std::vector<FitTable> tables, FitOptions options, TaskRunner run_tasks)
    : state_(std::make_unique<State>(model, std::move(parameters), std::move(tables), options,
                                     std::move(run_tasks))) {}

RobustFit::RobustFit(const RobustFit& other, FitModel& model, TaskRunner run_tasks)
    : RobustFit(model, other.state_->parameters, other.state_->tables, other.state_->options,
                std::move(run_tasks)) {
  state_->rows.know_what(other.state_->rows);
  state_->all = other.state_->all;
}

RobustFit::~RobustFit() = default;

Fit RobustFit::fit(const std::optional<std::string>& without,
                   const std::optional<std::vector<double>>& begin) {
  State& state = *state_;
  std::vector<std::size_t> all;
  std::vector<std::size_t> used;
  for (std::size_t table = 0; table < state.tables.size(); ++table) {
    all.push_back(table);
    if (state.tables[table].system != without) {
      used.push_back(table);
    }
  }
  std::vector<double> point;
  for (const FitParameter& parameter : state.parameters) {
    point.push_back(parameter.start);
  }
  if (!state.all) {
    state.rows.find_influences(point);
    // Results on the way to where all tables lead serve every other fit.
    state.all = state.solve(point, all);
    state.rows.keep();
  }
  if (!without && !begin) {
    return *state.all;
  }
  Fit fit = state.solve(begin.value_or(point), used);
  state.rows.forget();
  return fit;
}

Fit RobustFit::fit(const FitChange& change, const std::vector<double>& begin) {
  static_cast<void>(fit());  // Finds out what the model says on the way.
  State& state = *state_;
  std::vector<std::size_t> used(state.tables.size());
  std::iota(used.begin(), used.end(), std::size_t{0});
  const std::vector<FitParameter> parameters = state.parameters;
  const std::vector<double> weights = std::exchange(state.weights, change.weights);
  const FitOptions options = state.options;
  state.options.scale = change.scale;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    state.parameters[k].spread = change.spreads[k];
  }
  Fit fit = state.solve(begin, used);
  state.parameters = parameters;
  state.weights = weights;
  state.options = options;
  return fit;
}

std::vector<RobustFitRow> RobustFit::rows_at(const std::vector<double>& point) {
  FitRows& known = state_->rows;
  known.learn_exactly(point);
  std::vector<RobustFitRow> rows(known.rows().size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    rows[r].parameters = known.rows()[r].parameters;
    rows[r].misfit = known.log_time(r, point, rows[r].derivatives) - known.rows()[r].log_measured;
  }
  return rows;
}

}  // namespace trainyard
