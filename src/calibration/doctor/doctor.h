// SPDX-License-Identifier: Apache-2.0
// Is a measured log normal for its machine, and if not, what explains it? Each fault that the
// machine can have is simulated, and the curves of all of them are held against the log
// (docs/commands/doctor.md).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "calibration/doctor/doctor_faults.h"
#include "calibration/doctor/doctor_limits.h"
#include "calibration/doctor/doctor_log.h"
#include "calibration/doctor/doctor_model.h"
#include "calibration/fit/intervals.h"
#include "calibration/solver/robust_fit.h"

namespace trainyard {

// One run of the log as it would be predicted: the variables and launch of `item` count.
struct DoctorRun {
  ValidationCase item;
  Operation operation = Operation::AllReduce;
  std::vector<DoctorPoint> points;  // At least one.
};

// The row that the healthy machine would print, and why.
struct HealthyRow {
  std::size_t run = 0;
  Bytes size;
  SimTime time;
  std::string how = {};  // "Ring LL128, 24 channels"
  LimitShare limit = {};
};

struct Hypotheses {
  // The faults that were simulated; left_out says why others could not be.
  std::vector<MachineFault> faults;
  std::vector<Candidate> candidates;
  std::vector<HealthyRow> rows;  // Run by run.
  nccl::MachineKind machine;
};

// The healthy machine, and what ran on it.
struct DoctorInputs {
  const Cluster& cluster;
  const nccl::Profile& profile;
  std::span<const DoctorRun> runs;  // At least one.
};

// Predicts every row of every run with every variant of every fault. Throws ConfigError for what
// cannot be predicted of the healthy machine.
[[nodiscard]] Hypotheses predict_hypotheses(const DoctorInputs& inputs,
                                            const TaskRunner& run_tasks);

// The errors of machines of this kind.
[[nodiscard]] ErrorModel error_model(const nccl::MachineKind& machine, const Intervals& intervals);

enum class Verdict { Below, Within, Above };
// "below", "within", "above": of the expected range.
[[nodiscard]] std::string_view to_string(Verdict verdict);

struct DoctorRow {
  HealthyRow healthy;
  SimTime measured;
  TimeInterval expected;
  Verdict verdict = Verdict::Within;
};

struct DoctorResult {
  Hypotheses hypotheses;
  std::vector<DoctorRow> rows;
  Diagnosis diagnosis;
  std::size_t above = 0;      // Rows that took longer than their range.
  std::size_t below = 0;      // Rows that took less.
  bool is_known_kind = true;  // A measured table shows such a machine.
  // Data that came out wrong, a line each: whatever the times are, such a log is not normal.
  std::vector<std::string> wrong_results = {};

  [[nodiscard]] std::size_t outside() const { return above + below; }
  // Returns whether more rows on one side than 1 / `part` of all, at least three or three in four,
  // are too many for chance or the model's errors.
  [[nodiscard]] bool is_too_many(std::size_t count, std::size_t part) const {
    return part * count > rows.size() && (count >= 3 || 4 * count >= 3 * rows.size());
  }
  // No fault makes a machine faster, so it takes more rows to say so than that it is slow: of the
  // 173 measured tables of validation/ledger.csv 13 have a quarter of their rows above, 9 half of
  // them below.
  [[nodiscard]] bool is_slow() const { return is_too_many(above, 4); }
  [[nodiscard]] bool is_fast() const { return is_too_many(below, 2); }

  [[nodiscard]] bool is_normal() const { return wrong_results.empty() && has_normal_times(); }
  // Decided by the rows outside first, and then by the likeliest explanation.
  [[nodiscard]] bool has_normal_times() const {
    return !is_slow() && !is_fast() && diagnosis.is_healthy;
  }
};

[[nodiscard]] DoctorResult examine(Hypotheses hypotheses, std::span<const DoctorRun> runs,
                                   const Intervals& intervals);

}  // namespace trainyard
