// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/nccl_fit.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <set>
#include <tuple>
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
    : cases_(cases), catalogue_(catalogue), constants_(constants), run_tasks_(run_tasks) {
  std::tie(lane_, tables_) = lane(run_tasks);
  lane_.fit = std::make_unique<RobustFit>(*lane_.model, fit_parameters(constants.all()), tables_,
                                          options, run_tasks);
  all_ = lane_.fit->fit();
}

NcclFit::~NcclFit() = default;

std::pair<NcclFit::Lane, std::vector<FitTable>> NcclFit::lane(const TaskRunner& run_tasks) const {
  std::vector<double> starts;
  for (const ProfileConstant& constant : constants_.all()) {
    starts.push_back(constant.start);
  }
  const nccl::Profile profile = constants_.profile(starts);
  std::vector<FittedCase> made(cases_.size());
  run_tasks(cases_.size(), [&](std::size_t index) {
    made[index] = fitted_case(cases_[index], catalogue_, profile);
  });
  Lane lane;
  std::vector<FitTable> tables;
  std::vector<std::unique_ptr<NcclSession>> sessions;
  for (FittedCase& one : made) {
    if (one.session != nullptr) {
      tables.push_back(std::move(one.table));
      lane.clusters.push_back(std::move(one.cluster));
      sessions.push_back(std::move(one.session));
    }
  }
  lane.model = std::make_unique<NcclFitModel>(constants_, std::move(sessions));
  return {std::move(lane), std::move(tables)};
}

std::vector<LeftOut> NcclFit::leave_out(std::span<const std::string> systems) {
  const TaskRunner one_by_one = [](std::size_t count,
                                   const std::function<void(std::size_t)>& task) {
    for (std::size_t index = 0; index < count; ++index) {
      task(index);
    }
  };
  std::vector<LeftOut> left(systems.size());
  std::mutex mutex;
  std::vector<Lane> idle;
  run_tasks_(systems.size(), [&](std::size_t index) {
    Lane own;
    {
      const std::scoped_lock lock(mutex);
      if (!idle.empty()) {
        own = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (own.fit == nullptr) {
      own = lane(one_by_one).first;
      own.fit = std::make_unique<RobustFit>(*lane_.fit, *own.model, one_by_one);
    }
    left[index] = left_out(systems[index], own.fit->fit(systems[index]));
    const std::scoped_lock lock(mutex);
    idle.push_back(std::move(own));
  });
  return left;
}

LeftOut NcclFit::left_out(const std::string& system, Fit fit) const {
  LeftOut left{.system = system, .fit = std::move(fit), .unseen = {}, .alone = {}};
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
