// SPDX-License-Identifier: Apache-2.0
// Validation cases predicted with constants that were fitted instead of read: to the tables of all
// systems, and for each system to those of all others, so that it is foreseen and not remembered
// (docs/commands/validate.md).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "calibration/fit/nccl_fit.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/predict/validation.h"
#include "calibration/predict/validation_case.h"
#include "calibration/solver/robust_fit.h"
#include "hw/parts/catalogue.h"

namespace trainyard {

struct Refit {
  std::vector<ProfileConstant> constants;
  Fit fit;            // To all tables; by constant.
  Validation fitted;  // With it: the model at its best on tables that it has seen.
  // Each system with the constants that are fitted to the others; nothing if not asked for.
  std::optional<Validation> left_out = {};
  std::vector<LeftOut> systems = {};  // In the order of their names.
};

enum class LeaveOneOut { No, Yes };

struct RefitRequest {
  std::span<const LoadedCase> fitted;                // Cases that constants are fitted to.
  std::function<bool(const ValidationCase&)> shown;  // Which of them are predicted.
  LeaveOneOut leave_one_out = LeaveOneOut::No;
  FitOptions options = {};
};

[[nodiscard]] Refit refit(const RefitRequest& request, const ProfileConstants& constants,
                          const Catalogue& catalogue, const TaskRunner& run_tasks);

}  // namespace trainyard
