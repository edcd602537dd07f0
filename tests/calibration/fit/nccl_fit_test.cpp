// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/fit/nccl_fit.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/synthetic_cases.h"

namespace trainyard {
namespace {

std::size_t number_of(const std::string& name) {
  const std::vector<ProfileConstant>& all = shipped_constants().all();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const ProfileConstant& one) { return one.name == name; });
  REQUIRE(found != all.end());
  return static_cast<std::size_t>(found - all.begin());
}

// The assumed constants but for some.
nccl::Profile known_profile() {
  std::vector<double> values;
  for (const ProfileConstant& one : shipped_constants().all()) {
    values.push_back(one.start);
  }
  values[number_of("gpus.hopper.simple_rate")] = 27.0 * 8e9;
  values[number_of("gpus.hopper.simple_cost")] = 1.8e-6;
  values[number_of("gpus.ampere.simple_cost")] = 7e-6;
  return shipped_constants().profile(values);
}

double fitted(const Fit& fit, const std::string& name) {
  return std::exp(fit.parameters[number_of(name)].value);
}

}  // namespace

TEST_CASE("a fit finds the constants with which the model made the tables", "[fit][nccl]") {
  const SyntheticCases made(known_profile());
  NcclFit fit(made.cases(), shipped_catalogue(), shipped_constants(), {}, one_by_one);
  REQUIRE(fit.all().converged);
  REQUIRE(fit.systems() == std::vector<std::string>{"large", "old", "small"});
  REQUIRE(fitted(fit.all(), "gpus.hopper.simple_cost") == Approx(1.8e-6).epsilon(0.15));
  REQUIRE(fitted(fit.all(), "gpus.ampere.simple_cost") == Approx(7e-6).epsilon(0.15));
  // With all channels in use the links of the other are the limit, not its blocks.
  const FittedParameter rate = fit.all().parameters[number_of("gpus.hopper.simple_rate")];
  REQUIRE(std::abs(rate.value - std::log(27.0 * 8e9)) < 2.0 * rate.standard_error);

  // LL is not in these tables.
  REQUIRE(fit.all().parameters[number_of("gpus.hopper.ll_cost")].rows == 0);

  // The only A100 goes: its constants are those between which they stand.
  const std::vector<std::string> systems{"old", "small"};
  const std::vector<LeftOut> left = fit.leave_out(systems);
  const LeftOut& old = left.at(0);
  const std::size_t number = number_of("gpus.ampere.simple_cost");
  REQUIRE(std::count(old.unseen.begin(), old.unseen.end(), number) == 1);
  REQUIRE(old.alone == std::vector<std::string>{"old"});
  REQUIRE(old.fit.parameters[number].systems.empty());
  REQUIRE(old.fit.parameters[number].standard_error >
          3.0 * fit.all().parameters[number].standard_error);
  REQUIRE(fitted(old.fit, "gpus.ampere.simple_cost") < 0.7 * 7e-6);
  // One of two H100 goes: the other shows them.
  const LeftOut& small = left.at(1);
  REQUIRE(fitted(small.fit, "gpus.hopper.simple_cost") == Approx(1.8e-6).epsilon(0.2));
}

TEST_CASE("cases that cannot be predicted are not fitted to", "[fit][nccl][long]") {
  const SyntheticCases made(known_profile());
  std::vector<LoadedCase> cases = made.cases();
  cases[0].item.not_covered = "a reason";
  cases[1].item.ranks = 4;  // Not what its cluster has.
  const NcclFit fit(cases, shipped_catalogue(), shipped_constants(), {}, one_by_one);
  REQUIRE(fit.systems() == std::vector<std::string>{"old"});
}

}  // namespace trainyard
