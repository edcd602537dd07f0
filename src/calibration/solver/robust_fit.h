// SPDX-License-Identifier: Apache-2.0
// Fits the constants of a model to measured tables.
//
// With p the constants, x = ln p, and for each row r of table t the misfit e = ln(predicted(p)) -
// ln(measured), the fit is the x within its limits that makes the least of
//
//   1/2 sum_t sum_r w_r rho((e / scale)^2)  +  1/2 sum_k ((x_k - m_k) / ln s_k)^2
//
// rho(z) = 2 (sqrt(1 + z) - 1) counts small misfits by their square and large ones by their size,
// so that what the model does not have pulls no harder than the rest. The weights w of a table add
// up to one, however many rows it has. The second sum is the prior: m_k is where a constant starts
// or, of tied ones, the x of another constant; s_k is its spread. It decides only what no table
// shows. Solved with Ceres (trust region, ceres-solver.org).
//
// Predictions are expensive. So the sum is made least by what is known of the rows, tangents that
// were taken before (fit_rows.h), and the model is asked where that leads, in rounds, until it
// agrees. The minimum is a local one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trainyard {

// The model that predicts. Points are sets of ln(constant).
class FitModel {
 public:
  FitModel() = default;
  FitModel(const FitModel&) = delete;
  FitModel& operator=(const FitModel&) = delete;
  virtual ~FitModel() = default;
  // The points that log_time() means by their numbers from now on.
  virtual void set_points(std::span<const std::vector<double>> points) = 0;
  // ln of the time of these rows of a table at a point. Called for different tables at once.
  virtual void log_times(std::size_t table, std::size_t point, std::span<const std::size_t> rows,
                         std::span<double> times) = 0;
};

// All of ln(constant).
struct FitParameter {
  std::string name;
  double start = 0.0;
  double min = 0.0;
  double max = 0.0;
  double spread = 1.0;                        // One standard deviation of the prior.
  std::optional<std::size_t> neighbour = {};  // Tied to this one instead of to `start`.
  double slower = 1.0;                        // The sign of a change that costs time.
};

struct FitTable {
  struct Row {
    double log_measured = 0.0;
    double stands_for = 1.0;  // Rows of the table, itself included.
  };
  std::string name;
  std::string system;  // Tables of one system are left out together.
  std::vector<Row> rows;
};

struct FittedParameter {
  double value = 0.0;  // ln(constant).
  // Standard error of `value`, from the curvature of the sums above, as if each table were one
  // measurement with the misfit that tables have on average.
  double standard_error = 0.0;
  // Number of rows that change by at least a twentieth of what the constant changes by; none: only
  // the prior.
  std::size_t rows = 0;
  std::vector<std::string> tables = {};  // Tables of these rows; in the order of their names.
  std::vector<std::string> systems = {};
};

struct Fit {
  std::vector<FittedParameter> parameters;
  double cost = 0.0;  // The sums above.
  int rounds = 0;
  bool converged = false;
};

// Runs task(0) .. task(count - 1), perhaps on several threads.
using TaskRunner =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& task)>;

struct FitOptions {
  double scale = 0.05;
  int max_rounds = 20;
  bool standard_errors = true;
};

// The differences of another fit to the same rows.
struct FitChange {
  std::vector<double> weights;  // Weight of each row, table by table; 0: not fitted to.
  std::vector<double> spreads;  // Spread of each parameter.
  double scale = 0.05;
};

// A row where a fit ended.
struct RobustFitRow {
  double misfit = 0.0;                         // ln(predicted) - ln(measured).
  std::vector<std::uint32_t> parameters = {};  // Parameters that change it, in order.
  std::vector<double> derivatives = {};        // d ln(predicted) / d x of these.
};

class RobustFit {
 public:
  // The model must outlive it.
  RobustFit(FitModel& model, std::vector<FitParameter> parameters, std::vector<FitTable> tables,
            FitOptions options, TaskRunner run_tasks);
  // Fits as `other` does after its first fit, with a model of its own that predicts the same: for
  // another thread.
  RobustFit(const RobustFit& other, FitModel& model, TaskRunner run_tasks);
  RobustFit(const RobustFit&) = delete;
  RobustFit& operator=(const RobustFit&) = delete;
  ~RobustFit();

  // Fits to the tables of all systems but this one. `begin` is where the search begins instead of
  // at the starts of the parameters; what they assume stays. Does not depend on the fits before,
  // except that the first one, to all tables, finds out what the model says on the way.
  [[nodiscard]] Fit fit(const std::optional<std::string>& without = std::nullopt,
                        const std::optional<std::vector<double>>& begin = std::nullopt);

  // Fits to all tables with other weights, spreads and scale, from `begin`.
  [[nodiscard]] Fit fit(const FitChange& change, const std::vector<double>& begin);
  // All rows, table by table, as the model has them at a point.
  [[nodiscard]] std::vector<RobustFitRow> rows_at(const std::vector<double>& point);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
