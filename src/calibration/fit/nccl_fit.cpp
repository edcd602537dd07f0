// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/nccl_fit.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "calibration/predict/nccl_prediction.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// From this size on, one row represents two.
constexpr Bytes kOneInTwo = mib(64);

// A case that is fitted to. The session holds on to the cluster.
struct FittedCase {
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<NcclSession> session;
  FitTable table;
};

FittedCase fitted_case(const LoadedCase& loaded, const Catalogue& catalogue,
                       const nccl::Profile& profile) {
  FittedCase made;
  if (loaded.item.not_covered) {
    return made;
  }
  std::vector<Bytes> sizes;
  made.table.name = loaded.item.name;
  made.table.system = loaded.item.system;
  const std::vector<ValidationRow> rows = validation_rows(loaded);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (!row->excluded.empty()) {
      continue;
    }
    // Large rows are expensive, and one is like the next: every second one, from the largest.
    if (row->size >= kOneInTwo && !sizes.empty() && made.table.rows.back().stands_for < 2.0) {
      made.table.rows.back().stands_for = 2.0;
      continue;
    }
    sizes.push_back(row->size);
    made.table.rows.push_back({.log_measured = std::log(row->measured.seconds())});
  }
  std::reverse(sizes.begin(), sizes.end());
  std::reverse(made.table.rows.begin(), made.table.rows.end());
  try {
    if (!sizes.empty()) {
      made.cluster = std::make_unique<Cluster>(cluster_of(loaded.item, catalogue));
      made.session = std::make_unique<NcclSession>(loaded.item, *made.cluster, profile,
                                                   loaded.operation, sizes);
      static_cast<void>(made.session->time(0));  // Some algorithms are refused only here.
    }
  } catch (const ConfigError&) {
    // Not covered: validation says why.
    made.session.reset();
  }
  return made;
}

}  // namespace

NcclFit::NcclFit(std::span<const LoadedCase> cases, const Catalogue& catalogue,
                 const ProfileConstants& constants, const FitOptions& options,
                 const TaskRunner& run_tasks)
    : constants_(constants) {
  std::vector<double> starts;
  for (const ProfileConstant& constant : constants.all()) {
    starts.push_back(constant.start);
  }
  const nccl::Profile profile = constants.profile(starts);
  std::vector<FittedCase> made(cases.size());
  run_tasks(cases.size(), [&](std::size_t index) {
    made[index] = fitted_case(cases[index], catalogue, profile);
  });
  std::erase_if(made, [](const FittedCase& one) { return one.session == nullptr; });
  for (const FittedCase& one : made) {
    tables_.push_back(one.table);
  }
  std::vector<std::unique_ptr<NcclSession>> sessions;
  for (FittedCase& one : made) {
    clusters_.push_back(std::move(one.cluster));
    sessions.push_back(std::move(one.session));
  }
  model_ = std::make_unique<NcclFitModel>(constants, std::move(sessions));
  fit_ = std::make_unique<RobustFit>(*model_, fit_parameters(constants.all()), tables_, options,
                                     run_tasks);
  all_ = fit_->fit();
}

NcclFit::~NcclFit() = default;

LeftOut NcclFit::leave_out(const std::string& system) {
  LeftOut left{.system = system, .fit = fit_->fit(system), .unseen = {}, .alone = {}};
  std::set<std::string> alone;
  for (std::size_t k = 0; k < all_.parameters.size(); ++k) {
    const FittedParameter& parameter = all_.parameters[k];
    if (parameter.systems.size() == 1 && parameter.systems.front() == system) {
      left.unseen.push_back(k);
      alone.insert(parameter.tables.begin(), parameter.tables.end());
    }
  }
  left.alone.assign(alone.begin(), alone.end());
  return left;
}

std::vector<std::string> NcclFit::systems() const {
  std::set<std::string> names;
  for (const FitTable& table : tables_) {
    names.insert(table.system);
  }
  return {names.begin(), names.end()};
}

nccl::Profile NcclFit::profile(const Fit& fit) const {
  std::vector<double> point;
  for (const FittedParameter& parameter : fit.parameters) {
    point.push_back(parameter.value);
  }
  return constants_.profile(exponentials(point));
}

}  // namespace trainyard
