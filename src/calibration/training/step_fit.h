// SPDX-License-Identifier: Apache-2.0
// Fits the constants of the training step (step_values.h) to measured step times.
//
// With x = ln(constants) and, for row r of source t, e = ln(predicted(x)) - ln(measured), the fit
// is the x that makes the least of
//
//   1/2 sum_t sum_r w_r rho((e / 0.05)^2)  +  1/2 sum_k ((x_k - ln start_k) / ln spread_k)^2
//
// as robust_fit.h has it, where w_r adds up to one over the rows of a source; its dense rows and
// those with experts are two. Predictions are cheap here, once the collectives of a row are known,
// so that Ceres asks the model itself, with differences as slopes.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "calibration/solver/robust_fit.h"
#include "calibration/training/step_prediction.h"
#include "calibration/training/step_values.h"
#include "calibration/training/training_case.h"
#include "calibration/training/training_score.h"

namespace trainyard {

struct FittedStepConstant {
  StepConstant constant;
  double value = 0.0;
  // Rows whose time changes by at least a twentieth of what the constant changes by.
  std::size_t rows = 0;
};

struct GenerationFit {
  std::string generation;
  // Sources that it is fitted to; in the order of their names.
  std::vector<std::string> sources = {};
  std::vector<FittedStepConstant> constants = {};
  double cost_before = 0.0;  // The sums above at the start, and where it ends.
  double cost = 0.0;
};

// Predictions of cases, each of which keeps the collectives that it has seen. May be used by
// several threads at once.
class CasePredictions {
 public:
  // `constants` must outlive it.
  explicit CasePredictions(const StepConstants& constants,
                           StepMethod method = StepMethod::ClosedForms)
      : constants_(constants), method_(method) {}

  [[nodiscard]] StepTime predict(const TrainingCase& item, const TrainingRun& run,
                                 const StepValues& values);

 private:
  struct Guarded {
    std::mutex mutex;
    std::unique_ptr<StepPrediction> prediction;
  };
  const StepConstants& constants_;
  StepMethod method_;
  std::mutex mutex_;
  std::map<std::string, Guarded> cases_;  // Cases by name.
};

// Fits those constants that change any row. Rows beyond a hundred of a source stand for others.
[[nodiscard]] GenerationFit fit_steps(std::span<const LoadedTrainingCase* const> cases,
                                      const StepPriors& priors, CasePredictions& predictions,
                                      const TaskRunner& run_tasks);

[[nodiscard]] StepValues values_of(const GenerationFit& fit, const StepPriors& priors);

}  // namespace trainyard
