// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/doctor/doctor_model.h"

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "support/ledger_curves.h"

namespace trainyard {
namespace {

std::vector<LogPoint> doublings(std::size_t count) {
  std::vector<LogPoint> points;
  for (std::size_t row = 0; row < count; ++row) {
    points.push_back({.run = 0, .size = Bytes(64) * (std::int64_t{1} << row)});
  }
  return points;
}

// Of all curves of a family; each system counts as the square root of its tables.
double ledger_likelihood(const std::vector<LedgerCurve>& curves, const std::string& family,
                         const ErrorModel& model) {
  std::map<std::string, int> tables;
  for (const LedgerCurve& curve : curves) {
    ++tables[curve.system];
  }
  double sum = 0.0;
  for (const LedgerCurve& curve : curves) {
    if (curve.family == family) {
      const ErrorDistribution errors(model, curve.points);
      sum += errors.log_density(curve.residuals) / std::sqrt(tables[curve.system]);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("one error has the density and the tail of Student's t") {
  const ErrorModel model{.common = 0.3,
                         .local = 0.4,
                         .length = 5.0,
                         .noise = 1.2,
                         .noise_between = 9.0,
                         .degrees = 3.0};
  const ErrorDistribution errors(model, doublings(1));
  const double scale = std::sqrt(0.09 + 0.16 + 1.44);  // 1.3
  for (const double x : {0.0, 0.5, -2.0, 7.0}) {
    // The density of three degrees in closed form.
    const double t = x / scale;
    const double density =
        6.0 * std::numbers::sqrt3 / (std::numbers::pi * (3.0 + t * t) * (3.0 + t * t)) / scale;
    REQUIRE(errors.log_density(std::vector{x}) == Approx(std::log(density)));
  }
  // 90 % of t with three degrees lie within 2.3534.
  REQUIRE(errors.tail(std::vector{2.3534 * scale}) == Approx(0.1).epsilon(1e-3));
  REQUIRE(errors.tail(std::vector{0.0}) == Approx(1.0));
}

TEST_CASE("errors of neighbouring sizes go together, those of other runs in part") {
  const ErrorModel model = error_model("rdma");
  std::vector<LogPoint> points = doublings(2);
  const ErrorDistribution near(model, points);
  points[1].run = 1;
  const ErrorDistribution apart(model, points);
  const std::vector<double> together{0.2, 0.2};
  const std::vector<double> opposite{0.2, -0.2};
  REQUIRE(near.log_density(together) > near.log_density(opposite) + 4.0);
  REQUIRE(apart.log_density(together) > apart.log_density(opposite));
  REQUIRE(apart.log_density(opposite) > near.log_density(opposite));
}

// Where this fails after a change of the ledger, fit the constants anew.
TEST_CASE("the constants of the error model make the ledger most likely") {
  const std::vector<LedgerCurve> curves = ledger_curves();
  constexpr double kStep = 1.4;
  constexpr double kSlack = 2.0;  // Of log likelihood, in which 2 means nothing.
  std::map<std::string, double> sums;
  for (const std::string family : {"nvswitch", "pcie", "rdma", "rdma-pcie", "xgmi", "unlike-any"}) {
    const ErrorModel model = error_model(family);
    const double best = ledger_likelihood(curves, family, model);
    for (const double factor : {1.0 / kStep, kStep}) {
      ErrorModel other = model;
      other.local *= factor;
      other.common *= factor;
      INFO(family << " " << factor);
      REQUIRE(ledger_likelihood(curves, family, other) < best + kSlack);
      const std::string name = factor > 1.0 ? " more" : " less";
      sums["all"] += best / 2.0;
      other = model;
      other.length *= factor;
      sums["length" + name] += ledger_likelihood(curves, family, other);
      other = model;
      other.noise_between *= factor;
      sums["noise" + name] += ledger_likelihood(curves, family, other);
    }
  }
  for (const auto& [name, sum] : sums) {
    INFO(name);
    REQUIRE(sum <= sums["all"] + kSlack);
  }
}

TEST_CASE("few of the tables that were foreseen are further off than one in a hundred") {
  int far = 0;
  int all = 0;
  for (const LedgerCurve& curve : ledger_curves()) {
    const ErrorDistribution errors(error_model(curve.family), curve.points);
    far += errors.tail(curve.residuals) < kMinTail ? 1 : 0;
    ++all;
  }
  INFO(far << " of " << all);
  REQUIRE(all > 80);
  REQUIRE(far * 12 < all);
}

TEST_CASE("the likeliest explanation comes first, and same predictions are one") {
  const std::vector<LogPoint> points = doublings(10);
  const std::vector<double> flat(10, 3.0);
  std::vector<double> bent = flat;
  for (std::size_t row = 5; row < 10; ++row) {
    bent[row] += 0.6;
  }
  std::vector<double> nearly = bent;
  nearly[9] += 0.5 * kSamePrediction;
  const Diagnoser diagnoser(error_model("nvswitch"), points,
                            {{.fault = 0, .log_times = flat},
                             {.fault = 1, .log_times = bent},
                             {.fault = 2, .log_times = nearly},
                             {.fault = 3, .log_times = flat}});
  const Diagnosis healthy = diagnoser.diagnose(flat);
  REQUIRE(healthy.is_healthy);
  REQUIRE(healthy.is_sure);
  REQUIRE(healthy.unseen == std::vector<std::size_t>{3});
  REQUIRE(healthy.explanations.size() == 2);
  REQUIRE(healthy.explanations[0].faults == std::vector<std::size_t>{0});
  REQUIRE(healthy.explanations[1].faults.size() == 2);
  REQUIRE(healthy.explanations[0].probability + healthy.explanations[1].probability == Approx(1.0));

  const Diagnosis ill = diagnoser.diagnose(bent);
  REQUIRE_FALSE(ill.is_healthy);
  REQUIRE(ill.fits);
  REQUIRE(ill.explanations[0].faults == std::vector<std::size_t>{1, 2});
  REQUIRE(ill.explanations[0].candidate == 1);
  REQUIRE(ill.explanations[0].probability > 0.99);

  std::vector<double> wild = flat;
  for (std::size_t row = 0; row < 10; row += 2) {
    wild[row] += 2.0;
  }
  const Diagnosis strange = diagnoser.diagnose(wild);
  REQUIRE_FALSE(strange.fits);
  REQUIRE_FALSE(strange.is_healthy);
}

TEST_CASE("given a fault, the faults share the probability of health") {
  Diagnosis diagnosis;
  diagnosis.explanations = {{.faults = {0}, .probability = 0.6, .tail = 0.5},
                            {.faults = {2}, .probability = 0.32, .tail = 0.4},
                            {.faults = {1}, .probability = 0.08, .tail = 0.2}};
  diagnosis.is_healthy = true;
  const Diagnosis given = given_a_fault(diagnosis);
  REQUIRE(given.explanations.size() == 2);
  REQUIRE(given.explanations[0].probability == Approx(0.8));
  REQUIRE(given.explanations[1].probability == Approx(0.2));
  REQUIRE(given.fits);
  REQUIRE(given.is_sure);
  REQUIRE_FALSE(given.is_healthy);
  diagnosis.explanations.resize(1);
  REQUIRE(given_a_fault(diagnosis).is_healthy);
}

TEST_CASE("halfway between two explanations neither is sure") {
  const std::vector<LogPoint> points = doublings(6);
  const std::vector<double> healthy(6, 1.0);
  std::vector<double> one = healthy;
  std::vector<double> two = healthy;
  std::vector<double> between = healthy;
  for (std::size_t row = 3; row < 6; ++row) {
    one[row] += 0.8;
    two[row] += 0.84;
    between[row] += 0.82;
  }
  const Diagnoser diagnoser(error_model("rdma"), points,
                            {{.fault = 0, .log_times = healthy},
                             {.fault = 1, .log_times = one},
                             {.fault = 2, .log_times = two}});
  const Diagnosis diagnosis = diagnoser.diagnose(between);
  REQUIRE_FALSE(diagnosis.is_sure);
  REQUIRE_FALSE(diagnosis.is_healthy);
  REQUIRE(diagnosis.explanations[0].probability < 0.75);
}

}  // namespace trainyard
