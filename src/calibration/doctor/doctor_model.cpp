// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor_model.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <boost/math/distributions/fisher_f.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "calibration/fit/intervals.h"
#include "sim/check.h"

namespace trainyard {
namespace {

struct FamilyErrors {
  std::string_view family;
  double local;
};

// The greatest likelihood of validation/ledger.csv, rounded up, with the degrees below
// (docs/commands/doctor.md); tests/calibration/doctor/doctor_model_test.cpp holds that it is the
// greatest.
constexpr std::array kFamilies{FamilyErrors{"nvswitch", 0.115}, FamilyErrors{"pcie", 0.145},
                               FamilyErrors{"rdma", 0.085},     FamilyErrors{"rdma-rack", 0.505},
                               FamilyErrors{"rdma-mesh", 0.27}, FamilyErrors{"rdma-pcie", 0.14},
                               FamilyErrors{"xgmi", 0.185},     FamilyErrors{"other-network", 0.2},
                               FamilyErrors{"unlike-any", 0.17}};
// Share of `local`: means of tables of one system have a correlation of 0.23.
constexpr double kCommonShare = 0.58;
constexpr double kLength = 13.7;
constexpr double kNoise = 0.015;  // At least: the ledger's rows of small sizes have less.
constexpr double kNoiseBetween = 0.105;
constexpr double kDegrees = 4.0;  // Assumed.

double log_sum(std::span<const double> values) {
  const double max = *std::max_element(values.begin(), values.end());
  double sum = 0.0;
  for (const double value : values) {
    sum += std::exp(value - max);
  }
  return max + std::log(sum);
}

std::vector<double> difference(std::span<const double> one, std::span<const double> other) {
  std::vector<double> result(one.size());
  std::transform(one.begin(), one.end(), other.begin(), result.begin(), std::minus<>());
  return result;
}

// Fills in what follows from the explanations.
void judge(Diagnosis& diagnosis) {
  const std::vector<Explanation>& all = diagnosis.explanations;
  diagnosis.fits = all.front().tail >= kMinTail;
  diagnosis.is_sure = all.size() == 1 || all[0].probability >= kBareOdds * all[1].probability;
  diagnosis.is_healthy = diagnosis.fits && all.front().faults.front() == 0;
}

bool are_same(std::span<const double> one, std::span<const double> other) {
  return std::equal(one.begin(), one.end(), other.begin(),
                    [](double a, double b) { return std::abs(a - b) < kSamePrediction; });
}

}  // namespace

ErrorModel error_model(std::string_view family) {
  for (const FamilyErrors& one : kFamilies) {
    if (one.family == family) {
      return {.common = kCommonShare * one.local,
              .local = one.local,
              .length = kLength,
              .noise = kNoise,
              .noise_between = kNoiseBetween,
              .degrees = kDegrees};
    }
  }
  CHECK(false, "a family of machines without errors");
}

ErrorDistribution::ErrorDistribution(const ErrorModel& model, std::span<const LogPoint> points)
    : size_(points.size()), degrees_(model.degrees), factor_(size_ * size_) {
  CHECK(!points.empty(), "a log has rows");
  const auto covariance = [&](std::size_t i, std::size_t j) {
    double sum = model.common * model.common;
    if (points[i].run == points[j].run) {
      const double apart = std::abs(std::log2(static_cast<double>(points[i].size.count()) /
                                              static_cast<double>(points[j].size.count())));
      sum += model.local * model.local * std::exp(-apart / model.length);
    }
    const double noise =
        regime_of(points[i].size) == SizeRegime::Between ? model.noise_between : model.noise;
    return i == j ? sum + noise * noise : sum;
  };
  const auto n = static_cast<Eigen::Index>(size_);
  Eigen::MatrixXd matrix(n, n);
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t j = 0; j < size_; ++j) {
      matrix(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = covariance(i, j);
    }
  }
  Eigen::Map<Eigen::MatrixXd> factor(factor_.data(), n, n);
  factor = matrix.llt().matrixL();
  const double log_determinant = 2.0 * factor.diagonal().array().log().sum();
  const auto rows = static_cast<double>(size_);
  constant_ = std::lgamma((degrees_ + rows) / 2.0) - std::lgamma(degrees_ / 2.0) -
              rows / 2.0 * std::log(degrees_ * std::numbers::pi) - log_determinant / 2.0;
}

double ErrorDistribution::squared_distance(std::span<const double> residuals) const {
  CHECK(residuals.size() == size_, "one residual for each point");
  const auto n = static_cast<Eigen::Index>(size_);
  const Eigen::Map<const Eigen::MatrixXd> factor(factor_.data(), n, n);
  const Eigen::Map<const Eigen::VectorXd> errors(residuals.data(), n);
  return factor.triangularView<Eigen::Lower>().solve(errors).squaredNorm();
}

double ErrorDistribution::log_density(std::span<const double> residuals) const {
  const double distance = squared_distance(residuals);
  return constant_ -
         (degrees_ + static_cast<double>(size_)) / 2.0 * std::log1p(distance / degrees_);
}

// The squared distance over the number of rows has the F distribution.
double ErrorDistribution::tail(std::span<const double> residuals) const {
  const auto n = static_cast<double>(size_);
  const boost::math::fisher_f distribution(n, degrees_);
  return boost::math::cdf(boost::math::complement(distribution, squared_distance(residuals) / n));
}

Diagnoser::Diagnoser(const ErrorModel& model, std::span<const LogPoint> points,
                     std::vector<Candidate> candidates)
    : errors_(model, points), candidates_(std::move(candidates)) {
  CHECK(!candidates_.empty(), "the healthy machine is a candidate");
  std::vector<std::size_t> count;  // Candidates that show, by fault.
  for (const Candidate& one : candidates_) {
    CHECK(one.log_times.size() == points.size(), "a prediction for each point");
    CHECK((one.fault == 0) == (&one == &candidates_.front()), "only the first is healthy");
    shows_.push_back(one.fault == 0 || !are_same(one.log_times, candidates_[0].log_times));
    faults_ = std::max(faults_, one.fault + 1);
    count.resize(faults_);
    count[one.fault] += shows_.back() ? 1U : 0U;
  }
  const auto tried = static_cast<double>(
      std::count_if(count.begin() + 1, count.end(), [](std::size_t of) { return of > 0; }));
  for (std::size_t index = 0; index < candidates_.size(); ++index) {
    const std::size_t fault = candidates_[index].fault;
    const double prior = fault == 0 ? kPriorOfHealth
                         : shows_[index]
                             ? (1.0 - kPriorOfHealth) / tried / static_cast<double>(count[fault])
                             : 0.0;
    log_priors_.push_back(std::log(prior));
  }
}

Diagnosis Diagnoser::diagnose(std::span<const double> log_measured) const {
  std::vector<double> posterior;
  for (std::size_t index = 0; index < candidates_.size(); ++index) {
    const auto residuals = difference(log_measured, candidates_[index].log_times);
    posterior.push_back(shows_[index] ? log_priors_[index] + errors_.log_density(residuals)
                                      : -std::numeric_limits<double>::infinity());
  }
  const double evidence = log_sum(posterior);
  Diagnosis diagnosis;
  for (std::size_t fault = 0; fault < faults_; ++fault) {
    Explanation explanation{.faults = {fault}};
    std::optional<std::size_t> best;
    bool any = false;
    for (std::size_t index = 0; index < candidates_.size(); ++index) {
      any = any || candidates_[index].fault == fault;
      if (candidates_[index].fault != fault || !shows_[index]) {
        continue;
      }
      explanation.probability += std::exp(posterior[index] - evidence);
      best = best && posterior[*best] >= posterior[index] ? *best : index;
    }
    if (best) {
      explanation.candidate = *best;
      diagnosis.explanations.push_back(std::move(explanation));
    } else if (any) {
      diagnosis.unseen.push_back(fault);
    }
  }
  std::ranges::stable_sort(diagnosis.explanations, std::ranges::greater(),
                           [&](const Explanation& one) { return posterior[one.candidate]; });
  merge_same(diagnosis.explanations);
  for (Explanation& explanation : diagnosis.explanations) {
    const auto residuals = difference(log_measured, candidates_[explanation.candidate].log_times);
    explanation.tail = errors_.tail(residuals);
    explanation.mean_residual = std::accumulate(residuals.begin(), residuals.end(), 0.0) /
                                static_cast<double>(residuals.size());
  }
  judge(diagnosis);
  return diagnosis;
}

// Findings in the order of their best candidates become one where those predict the same.
void Diagnoser::merge_same(std::vector<Explanation>& explanations) const {
  std::vector<Explanation> merged;
  for (Explanation& explanation : explanations) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Explanation& one) {
      return are_same(candidates_[one.candidate].log_times,
                      candidates_[explanation.candidate].log_times);
    });
    if (same == merged.end()) {
      merged.push_back(std::move(explanation));
    } else {
      same->faults.insert(same->faults.end(), explanation.faults.begin(), explanation.faults.end());
      same->probability += explanation.probability;
    }
  }
  std::ranges::stable_sort(merged, std::ranges::greater(), &Explanation::probability);
  explanations = std::move(merged);
}

Diagnosis given_a_fault(Diagnosis diagnosis) {
  std::vector<Explanation> faults;
  double sum = 0.0;
  for (const Explanation& one : diagnosis.explanations) {
    if (one.faults.front() != 0) {
      faults.push_back(one);
      sum += one.probability;
    }
  }
  if (sum > 0.0) {
    for (Explanation& one : faults) {
      one.probability /= sum;
    }
    diagnosis.explanations = std::move(faults);
    judge(diagnosis);
  }
  return diagnosis;
}

}  // namespace trainyard
