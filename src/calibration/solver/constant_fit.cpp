// SPDX-License-Identifier: Apache-2.0
#include "calibration/solver/constant_fit.h"

#include <spdlog/fmt/fmt.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/statistics.h"

namespace trainyard {
namespace {

// Rows that are off by more than this many standard deviations, and by more than this, are
// outliers, if no more than this part of all are.
constexpr double kFarOff = 5.0;
constexpr double kMinOutlier = 0.1;
constexpr double kMaxOutliers = 0.2;
constexpr int kOutlierRounds = 4;
// Limits of what times are known to: the tangents of fit_rows.h are as exact.
constexpr double kMinNoise = 0.003;
constexpr double kMaxNoise = 0.5;
// Beyond two standard deviations a row counts by its size and no longer by its square.
constexpr double kLossScale = 2.0;
// Limit of what data must add to what is assumed: the standard error is at most this part of the
// prior's.
constexpr double kOfPrior = 0.5;
// The spread of a constant that stays where it is.
constexpr double kHeld = 1e-4;
// Part of the largest eigenvalue: below, a combination of constants is not shown.
constexpr double kRank = 1e-8;

double median_of(std::vector<double> values) {
  if (values.empty()) {
    return 0.0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The standard deviation of normal misfits with this median of their sizes.
double noise_of(const std::vector<RobustFitRow>& rows, const std::vector<double>& weights) {
  std::vector<double> sizes;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (weights[r] > 0.0) {
      sizes.push_back(std::abs(rows[r].misfit));
    }
  }
  return std::clamp(1.4826 * median_of(std::move(sizes)), kMinNoise, kMaxNoise);
}

// The weight of a row of this misfit in the sums, and the square of its pull (rho of robust_fit.h):
// rho' + 2 z rho'', and z rho'^2, of one half of rho.
struct Pull {
  double curvature = 0.0;
  double square = 0.0;
};
Pull pull_of(double misfit, double scale) {
  const double z = std::pow(misfit / scale, 2);
  return {.curvature = std::pow(1.0 + z, -1.5), .square = z / (1.0 + z)};
}

// The information of rows about the constants that any of them moves with (knowledge_of).
struct Knowledge {
  std::vector<std::size_t> moving;
  Eigen::MatrixXd slopes;  // J' diag(curvature) J / scale^2
  Eigen::MatrixXd pulls;   // J' diag(square) J / scale^2
  Eigen::VectorXd spreads;
  double rows = 0.0;  // Number of rows that count.
  std::size_t rank = 0;
};

// Places of constants in Knowledge::moving.
using Places = std::vector<Eigen::Index>;

class Estimator {
 public:
  Estimator(FitModel& model, const std::vector<FitParameter>& parameters,
            const std::vector<FitTable>& tables, const std::vector<std::vector<bool>>& kept_out,
            const ConstantFitOptions& options, const TaskRunner& run_tasks)
      : parameters_(parameters),
        tables_(tables),
        options_(options),
        fit_(model, parameters, tables, {.standard_errors = false}, run_tasks) {
    for (const std::vector<bool>& table : kept_out) {
      for (const bool is_marked : table) {
        const bool is_kept_out = is_marked && !options.all_rows;
        kept_out_.push_back(is_kept_out);
        uses_.push_back(is_kept_out ? RowUse::KeptOut : RowUse::Fitted);
        change_.weights.push_back(is_kept_out ? 0.0 : 1.0);
      }
    }
    for (const FitParameter& parameter : parameters) {
      change_.spreads.push_back(parameter.spread);
      start_.push_back(parameter.start);
    }
  }

  ConstantFit estimate() {
    Fit fit = fit_.fit(change_, start_);
    // A row that seemed far off may not be where the others lead without it.
    bool changed = true;
    for (int round = 0; changed && round < kOutlierRounds; ++round) {
      const std::vector<RobustFitRow> rows = fit_.rows_at(values_of(fit));
      result_.noise = noise_of(rows, change_.weights);
      changed = find_outliers(rows);
      change_.scale = kLossScale * result_.noise;
      fit = fit_.fit(change_, values_of(fit));
    }
    result_.constants.resize(parameters_.size());
    settle(std::move(fit));
    return result_;
  }

 private:
  static std::vector<double> values_of(const Fit& fit) {
    std::vector<double> values;
    for (const FittedParameter& parameter : fit.parameters) {
      values.push_back(parameter.value);
    }
    return values;
  }

  // Returns the values with those that are not determined where they were.
  [[nodiscard]] std::vector<double> held(std::vector<double> values) const {
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (!result_.constants[k].is_determined) {
        values[k] = start_[k];
      }
    }
    return values;
  }

  // Returns whether others are outliers than before.
  bool find_outliers(const std::vector<RobustFitRow>& rows) {
    const double max = std::max(kFarOff * result_.noise, kMinOutlier);
    std::size_t fitted = 0;
    std::size_t far = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      fitted += kept_out_[r] ? 0U : 1U;
      far += !kept_out_[r] && std::abs(rows[r].misfit) > max ? 1U : 0U;
    }
    result_.many_outliers = static_cast<double>(far) > kMaxOutliers * static_cast<double>(fitted);
    bool changed = false;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const bool is_outlier = !result_.many_outliers && std::abs(rows[r].misfit) > max;
      const RowUse use = is_outlier     ? RowUse::Outlier
                         : kept_out_[r] ? RowUse::KeptOut
                                        : RowUse::Fitted;
      changed = changed || use != uses_[r];
      uses_[r] = use;
      change_.weights[r] = use == RowUse::Fitted ? 1.0 : 0.0;
    }
    return changed;
  }

  // Rows of neighbouring sizes are off together where the model is. A chain of misfits whose
  // neighbours correlate by c says as much as (1 - c) / (1 + c) of its rows.
  [[nodiscard]] double design_effect(const std::vector<RobustFitRow>& rows) const {
    double together = 0.0;
    double squares = 0.0;
    std::size_t r = 0;
    for (const FitTable& table : tables_) {
      std::optional<double> before;
      for (std::size_t i = 0; i < table.rows.size(); ++i, ++r) {
        if (change_.weights[r] <= 0.0) {
          continue;
        }
        const double misfit = rows[r].misfit;
        together += before ? misfit * *before : 0.0;
        squares += misfit * misfit;
        before = misfit;
      }
    }
    const double correlation = squares > 0.0 ? std::clamp(together / squares, 0.0, 0.9) : 0.0;
    return (1.0 + correlation) / (1.0 - correlation);
  }

  [[nodiscard]] Knowledge knowledge_of(const std::vector<RobustFitRow>& rows) const {
    Knowledge known;
    std::vector<std::size_t> place(parameters_.size(), parameters_.size());
    for (const RobustFitRow& row : rows) {
      for (std::size_t i = 0; i < row.parameters.size(); ++i) {
        place[row.parameters[i]] = 0;
      }
    }
    for (std::size_t k = 0; k < place.size(); ++k) {
      if (place[k] == 0) {
        place[k] = known.moving.size();
        known.moving.push_back(k);
      }
    }
    const auto count = static_cast<Eigen::Index>(known.moving.size());
    known.slopes = Eigen::MatrixXd::Zero(count, count);
    known.pulls = known.slopes;
    known.spreads = Eigen::VectorXd::Zero(count);
    Eigen::MatrixXd plain = known.slopes;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (change_.weights[r] <= 0.0) {
        continue;
      }
      known.rows += 1.0;
      Eigen::VectorXd derivatives = Eigen::VectorXd::Zero(count);
      for (std::size_t i = 0; i < rows[r].parameters.size(); ++i) {
        derivatives(static_cast<Eigen::Index>(place[rows[r].parameters[i]])) =
            rows[r].derivatives[i];
      }
      const Pull pull = pull_of(rows[r].misfit, change_.scale);
      const Eigen::MatrixXd square = derivatives * derivatives.transpose();
      plain += square;
      known.slopes += square * (pull.curvature / std::pow(change_.scale, 2));
      known.pulls += square * (pull.square / std::pow(change_.scale, 2));
    }
    known.rank = rank_of(plain);
    for (Eigen::Index k = 0; k < count; ++k) {
      known.spreads(k) = parameters_[known.moving[static_cast<std::size_t>(k)]].spread;
    }
    return known;
  }

  // H^-1 of those that are free (docs/commands/calibrate.md).
  static Eigen::MatrixXd inverse_of(const Knowledge& known, const Places& free) {
    Eigen::MatrixXd curvature = known.slopes(free, free);
    curvature.diagonal() += known.spreads(free).array().square().inverse().matrix();
    return curvature.inverse();
  }

  // H^-1 M H^-1 of those that are free if all others are as shipped.
  [[nodiscard]] Eigen::MatrixXd covariance_of(const Knowledge& known, const Places& free) const {
    const Eigen::MatrixXd inverse = inverse_of(known, free);
    const Eigen::MatrixXd slopes = known.slopes(free, free);
    const double used = (inverse * slopes).trace();
    Eigen::MatrixXd middle = known.pulls(free, free);
    middle *= result_.design * known.rows / std::max(1.0, known.rows - used);
    middle.diagonal() += known.spreads(free).array().square().inverse().matrix();
    return inverse * middle * inverse;
  }

  // The largest standard error of a constant that is determined.
  [[nodiscard]] double limit_of(std::size_t parameter) const {
    return std::min(std::log(options_.widest) / (2.0 * kNormal90Percent),
                    kOfPrior * parameters_[parameter].spread);
  }

  static std::size_t rank_of(const Eigen::MatrixXd& information) {
    if (information.rows() == 0) {
      return 0;
    }
    const Eigen::VectorXd values =
        Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(information, Eigen::EigenvaluesOnly)
            .eigenvalues();
    const double min = kRank * values.maxCoeff();
    return static_cast<std::size_t>((values.array() > min).count());
  }

  // Fits those that are determined, with all others as shipped; what that changes of the slopes may
  // leave more of them too open.
  void settle(Fit fit) {
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      ConstantEstimate& one = result_.constants[k];
      one.value = start_[k];
      one.standard_error = parameters_[k].spread;
      one.rows = fit.parameters[k].rows;
      one.tables = fit.parameters[k].tables;
      one.is_determined = one.rows >= options_.min_rows;
      one.reason = one.rows == 0 ? "no row moves with it"
                                 : fmt::format("rows that move with it: {}, too few", one.rows);
    }
    for (bool is_joint = true;;) {
      const std::vector<RobustFitRow> rows = fit_.rows_at(values_of(fit));
      result_.noise = noise_of(rows, change_.weights);
      result_.design = design_effect(rows);
      const Knowledge known = knowledge_of(rows);
      result_.moving = known.moving.size();
      result_.rank = known.rank;
      const bool dropped = drop_open(known);
      if (!is_joint && !dropped) {
        take_errors(known);
        finish(fit);
        return;
      }
      is_joint = false;
      for (std::size_t k = 0; k < parameters_.size(); ++k) {
        change_.spreads[k] = result_.constants[k].is_determined ? parameters_[k].spread : kHeld;
      }
      fit = fit_.fit(change_, held(values_of(fit)));
    }
  }

  [[nodiscard]] Places places_of(const Knowledge& known, bool determined) const {
    Places places;
    for (std::size_t i = 0; i < known.moving.size(); ++i) {
      if (result_.constants[known.moving[i]].is_determined == determined) {
        places.push_back(static_cast<Eigen::Index>(i));
      }
    }
    return places;
  }

  // The one that is furthest above its limit goes back, then the next. Returns whether any did.
  bool drop_open(const Knowledge& known) {
    bool any = false;
    for (;;) {
      const Places free = places_of(known, true);
      if (free.empty()) {
        return any;
      }
      const Eigen::MatrixXd covariance = covariance_of(known, free);
      double max = 1.0;
      Eigen::Index worst = -1;
      for (Eigen::Index i = 0; i < covariance.rows(); ++i) {
        const double error = std::sqrt(std::max(0.0, covariance(i, i)));
        const double over =
            error /
            limit_of(known.moving[static_cast<std::size_t>(free[static_cast<std::size_t>(i)])]);
        if (over > max) {
          max = over;
          worst = i;
        }
      }
      if (worst < 0) {
        return any;
      }
      go_back(known, free, covariance, worst);
      any = true;
    }
  }

  // Its reason names the constant that it is correlated with most, if it is with any.
  void go_back(const Knowledge& known, const Places& free, const Eigen::MatrixXd& covariance,
               Eigen::Index worst) {
    const auto parameter = [&](Eigen::Index i) {
      return known.moving[static_cast<std::size_t>(free[static_cast<std::size_t>(i)])];
    };
    double max = 0.5;
    std::string companion;
    for (Eigen::Index i = 0; i < covariance.rows(); ++i) {
      const double correlation =
          std::abs(covariance(i, worst)) / std::sqrt(covariance(i, i) * covariance(worst, worst));
      if (i != worst && correlation > max) {
        max = correlation;
        companion = ", and show it with " + parameters_[parameter(i)].name;
      }
    }
    const double error = std::sqrt(std::max(0.0, covariance(worst, worst)));
    ConstantEstimate& one = result_.constants[parameter(worst)];
    one.is_determined = false;
    one.reason = fmt::format("the rows leave a factor of {:.1f}{}",
                             std::exp(2.0 * kNormal90Percent * error), companion);
  }

  // With D the slopes between those that are fitted and those that are as shipped, whose squared
  // spreads are S: covariance + H^-1 D S D' H^-1.
  void take_errors(const Knowledge& known) {
    const Places free = places_of(known, true);
    const Places back = places_of(known, false);
    if (free.empty()) {
      return;
    }
    const Eigen::MatrixXd own = covariance_of(known, free);
    const Eigen::MatrixXd way = inverse_of(known, free) * known.slopes(free, back) *
                                Eigen::MatrixXd(known.spreads(back).asDiagonal());
    for (std::size_t i = 0; i < free.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      ConstantEstimate& one = result_.constants[known.moving[static_cast<std::size_t>(free[i])]];
      const double others = way.cols() == 0 ? 0.0 : way.row(at).squaredNorm();
      one.standard_error = std::max(kMinNoise, std::sqrt(own(at, at) + others));
      one.reason.clear();
      if (others > own(at, at)) {
        Eigen::Index max = 0;
        static_cast<void>(way.row(at).cwiseAbs().maxCoeff(&max));
        const auto place = static_cast<std::size_t>(back[static_cast<std::size_t>(max)]);
        one.rests_on = parameters_[known.moving[place]].name;
      }
    }
  }

  void finish(const Fit& fit) {
    result_.converged = fit.converged;
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      if (result_.constants[k].is_determined) {
        result_.constants[k].value = fit.parameters[k].value;
      }
    }
    const std::vector<RobustFitRow> before = fit_.rows_at(start_);
    const std::vector<RobustFitRow> after = fit_.rows_at(held(values_of(fit)));
    std::size_t r = 0;
    for (const FitTable& table : tables_) {
      std::vector<EstimatedRow>& rows = result_.tables.emplace_back();
      for (std::size_t i = 0; i < table.rows.size(); ++i, ++r) {
        rows.push_back({.use = uses_[r], .shipped = before[r].misfit, .fitted = after[r].misfit});
      }
    }
  }

  const std::vector<FitParameter>& parameters_;
  const std::vector<FitTable>& tables_;
  ConstantFitOptions options_;
  RobustFit fit_;
  std::vector<double> start_;
  std::vector<bool> kept_out_;  // Indexed by row.
  std::vector<RowUse> uses_;    // Indexed by row.
  FitChange change_;
  ConstantFit result_;
};

}  // namespace

FittedConstant fitted_constant(std::string name, bool is_time, double shipped,
                               const ConstantEstimate& estimate, double min, double max) {
  FittedConstant made{.name = std::move(name),
                      .is_time = is_time,
                      .shipped = shipped,
                      .value = shipped,
                      .is_fitted = estimate.is_determined,
                      .rows = estimate.rows,
                      .reason = estimate.reason};
  if (made.is_fitted) {
    const double half = kNormal90Percent * estimate.standard_error;
    made.value = std::exp(estimate.value);
    made.low = std::max(min, std::exp(estimate.value - half));
    made.high = std::min(max, std::exp(estimate.value + half));
  }
  return made;
}

ConstantFit fit_constants(FitModel& model, const std::vector<FitParameter>& parameters,
                          const std::vector<FitTable>& tables,
                          const std::vector<std::vector<bool>>& kept_out,
                          const ConstantFitOptions& options, const TaskRunner& run_tasks) {
  return Estimator(model, parameters, tables, kept_out, options, run_tasks).estimate();
}

}  // namespace trainyard
