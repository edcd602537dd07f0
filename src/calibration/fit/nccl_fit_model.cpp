// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/nccl_fit_model.h"

#include <cmath>
#include <utility>

namespace trainyard {

NcclFitModel::NcclFitModel(const ProfileConstants& constants,
                           std::vector<std::unique_ptr<NcclSession>> sessions)
    : constants_(constants), sessions_(std::move(sessions)) {}

void NcclFitModel::set_points(std::span<const std::vector<double>> points) {
  profiles_.clear();
  for (const std::vector<double>& point : points) {
    profiles_.push_back(constants_.profile(exponentials(point)));
  }
}

void NcclFitModel::log_times(std::size_t table, std::size_t point,
                             std::span<const std::size_t> rows, std::span<double> times) {
  NcclSession& session = *sessions_[table];
  session.use(profiles_[point]);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    times[i] = std::log(session.time(rows[i]).seconds());
  }
}

SimTime NcclFitModel::time(std::size_t table, std::size_t row, const nccl::Profile& profile) {
  sessions_[table]->use(profile);
  return sessions_[table]->time(row);
}

std::vector<FitParameter> fit_parameters(std::span<const ProfileConstant> constants) {
  std::vector<FitParameter> parameters;
  for (const ProfileConstant& constant : constants) {
    parameters.push_back(
        {.name = constant.name,
         .start = std::log(constant.start),
         .min = std::log(constant.min),
         .max = std::log(constant.max),
         .spread = std::log(constant.neighbour ? constant.neighbour_spread : constant.spread),
         .neighbour = constant.neighbour,
         .slower = constant.kind == ConstantKind::Time ? 1.0 : -1.0});
  }
  return parameters;
}

std::vector<double> exponentials(std::span<const double> logarithms) {
  std::vector<double> values;
  for (const double x : logarithms) {
    values.push_back(std::exp(x));
  }
  return values;
}

}  // namespace trainyard
