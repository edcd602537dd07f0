// SPDX-License-Identifier: Apache-2.0
#include "calibration/fit/refit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "calibration/predict/nccl_prediction.h"
#include "nccl/timing/profile.h"

namespace trainyard {
namespace {

std::vector<const LoadedCase*> shown_cases(const RefitRequest& request) {
  std::vector<const LoadedCase*> cases;
  for (const LoadedCase& one : request.fitted) {
    if (request.shown(one.item)) {
      cases.push_back(&one);
    }
  }
  return cases;
}

// Each case with its own profile.
Validation validation_with(const std::vector<const LoadedCase*>& cases,
                           const std::vector<const nccl::Profile*>& profiles,
                           const Catalogue& catalogue, const TaskRunner& run_tasks) {
  std::vector<CaseResult> results(cases.size());
  run_tasks(cases.size(), [&](std::size_t index) {
    results[index] = run_case(*cases[index], catalogue, nccl_predictor(*profiles[index]));
  });
  return validation_of(std::move(results));
}

}  // namespace

Refit refit(const RefitRequest& request, const ProfileConstants& constants,
            const Catalogue& catalogue, const TaskRunner& run_tasks) {
  NcclFit fit(request.fitted, catalogue, constants, request.options, run_tasks);
  const std::vector<const LoadedCase*> cases = shown_cases(request);
  const nccl::Profile fitted = fit.profile(fit.all());
  std::vector<const nccl::Profile*> profiles(cases.size(), &fitted);
  Refit result{.constants = constants.all(),
               .fit = fit.all(),
               .fitted = validation_with(cases, profiles, catalogue, run_tasks)};
  if (request.leave_one_out == LeaveOneOut::No) {
    return result;
  }
  std::vector<std::string> shown;
  for (const std::string& system : fit.systems()) {
    const bool is_shown = std::any_of(cases.begin(), cases.end(), [&](const LoadedCase* one) {
      return one->item.system == system;
    });
    if (is_shown) {
      shown.push_back(system);
    }
  }
  result.systems = fit.leave_out(shown);
  std::map<std::string, nccl::Profile> without;  // Profiles by system.
  for (const LeftOut& left : result.systems) {
    without.emplace(left.system, fit.profile(left.fit));
  }
  for (std::size_t index = 0; index < cases.size(); ++index) {
    // A system without a table that is fitted to has nothing to leave out.
    const auto own = without.find(cases[index]->item.system);
    profiles[index] = own == without.end() ? &fitted : &own->second;
  }
  result.left_out = validation_with(cases, profiles, catalogue, run_tasks);
  return result;
}

}  // namespace trainyard
