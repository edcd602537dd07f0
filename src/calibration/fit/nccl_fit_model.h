// SPDX-License-Identifier: Apache-2.0
// The event model of NCCL as the model of a fit (robust_fit.h): a table of it is a session.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "calibration/predict/nccl_prediction.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/solver/robust_fit.h"
#include "nccl/timing/profile.h"
#include "sim/units.h"

namespace trainyard {

class NcclFitModel : public FitModel {
 public:
  // The constants, and what the sessions hold on to, must outlive it.
  NcclFitModel(const ProfileConstants& constants,
               std::vector<std::unique_ptr<NcclSession>> sessions);

  void set_points(std::span<const std::vector<double>> points) override;
  void log_times(std::size_t table, std::size_t point, std::span<const std::size_t> rows,
                 std::span<double> times) override;
  // Returns the time of a row, with any profile. Only one thread may call it at a time.
  [[nodiscard]] SimTime time(std::size_t table, std::size_t row, const nccl::Profile& profile);

 private:
  const ProfileConstants& constants_;
  std::vector<std::unique_ptr<NcclSession>> sessions_;
  std::vector<nccl::Profile> profiles_;
};

// Returns what is assumed of each constant (profile-priors.yaml), in logarithms.
[[nodiscard]] std::vector<FitParameter> fit_parameters(std::span<const ProfileConstant> constants);

// Constants of their logarithms.
[[nodiscard]] std::vector<double> exponentials(std::span<const double> logarithms);

}  // namespace trainyard
