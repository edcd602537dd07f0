// SPDX-License-Identifier: Apache-2.0
// Computes how likely a log is under each explanation of it (docs/commands/doctor.md).
//
// An explanation predicts all rows. With r_i = ln(measured_i / predicted_i) and x_i the base-two
// logarithm of the size, errors of machines that no constant was fitted to have the covariance
//
//   K_ij = common^2 + [same run] local^2 exp(-|x_i - x_j| / length) + [i = j] noise_i^2
//
// (a bias of the system, what the model lacks at neighbouring sizes, and by itself: much between
// 64 KiB and 16 MiB, where algorithms and protocols change). r is drawn from a multivariate
// Student-t of this scale, because a few systems are much further off than the others. It was
// learned from validation/ledger.csv. Probabilities follow by Bayes' rule.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace trainyard {

// The error model of one family of machines (intervals.h). All are of ln(time), but for `length`,
// in doublings of the size, and `degrees` of freedom.
struct ErrorModel {
  double common = 0.0;
  double local = 0.0;
  double length = 1.0;
  double noise = 0.0;
  double noise_between = 0.0;  // Where latency and bandwidth both count (SizeRegime::Between).
  double degrees = 1.0;
};

// `family` is that of family_of(), or kUnlikeAny.
[[nodiscard]] ErrorModel error_model(std::string_view family);

// A row of the log: the run that it is of, and its size.
struct LogPoint {
  std::size_t run = 0;
  Bytes size;
};

// The errors of all rows of a log at once.
class ErrorDistribution {
 public:
  // `points` has at least one point.
  ErrorDistribution(const ErrorModel& model, std::span<const LogPoint> points);
  // ln of the density of these residuals, one for each point.
  [[nodiscard]] double log_density(std::span<const double> residuals) const;
  // Returns how often residuals of such machines are further off than these: 1 for none at all.
  [[nodiscard]] double tail(std::span<const double> residuals) const;

 private:
  [[nodiscard]] double squared_distance(std::span<const double> residuals) const;

  std::size_t size_;
  double degrees_;
  std::vector<double> factor_;  // Factor of Cholesky, column by column.
  double constant_ = 0.0;       // Constant of log_density.
};

// One way in which the log may have come about.
struct Candidate {
  std::size_t fault = 0;          // 0: none, the machine is healthy. Several may be of one fault.
  std::vector<double> log_times;  // ln of what it predicts, one for each point.
  std::size_t variant = 0;        // Index among the variants of the fault.
};

// Faults that this log cannot tell apart, as they predict the same times.
struct Explanation {
  std::vector<std::size_t> faults;
  double probability = 0.0;    // Probability of all of them together.
  std::size_t candidate = 0;   // The most likely one of theirs.
  double tail = 0.0;           // How often such a machine would be further off from it.
  double mean_residual = 0.0;  // Mean of ln(measured / predicted).
};

struct Diagnosis {
  std::vector<Explanation> explanations;  // The most likely first.
  std::vector<std::size_t> unseen;        // Faults that would change nothing in this log.
  bool is_healthy = false;                // The first explanation is no fault, and fits.
  bool fits = false;                      // The first explanation does.
  bool is_sure = false;                   // Three times as likely as the second.
};

// The same, given that the machine is not healthy: the faults share its probability in proportion
// to theirs. As it is where no fault has any.
[[nodiscard]] Diagnosis given_a_fault(Diagnosis diagnosis);

// Predictions nearer than this in ln(time), at every size, are the same.
inline constexpr double kSamePrediction = 0.005;
// The probability, before the log was seen, that the machine is healthy. All faults that were tried
// share the rest evenly, and so do the candidates of a fault.
inline constexpr double kPriorOfHealth = 0.5;
// A tail below which an explanation does not fit.
inline constexpr double kMinTail = 0.01;
// Odds that are worth no more than a bare mention (Kass and Raftery, Bayes factors, 1995).
inline constexpr double kBareOdds = 3.0;

class Diagnoser {
 public:
  // The first candidate is the healthy machine, the only one of fault 0.
  Diagnoser(const ErrorModel& model, std::span<const LogPoint> points,
            std::vector<Candidate> candidates);
  // `log_measured`: ln of the measured times, one for each point.
  [[nodiscard]] Diagnosis diagnose(std::span<const double> log_measured) const;

 private:
  void merge_same(std::vector<Explanation>& explanations) const;

  ErrorDistribution errors_;
  std::vector<Candidate> candidates_;
  std::vector<double> log_priors_;
  std::vector<bool> shows_;  // Indexed by candidate: it differs from the healthy one.
  std::size_t faults_ = 0;   // Numbers of faults, 0 included.
};

}  // namespace trainyard
