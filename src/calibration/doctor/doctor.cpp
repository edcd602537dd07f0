// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor.h"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "calibration/predict/nccl_prediction.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/cluster/reach.h"

namespace trainyard {
namespace {

double log_of(SimTime time) {
  return std::log(time.microseconds());
}

std::vector<Bytes> sizes_of(const DoctorRun& run) {
  std::vector<Bytes> sizes;
  for (const DoctorPoint& point : run.points) {
    sizes.push_back(point.size);
  }
  return sizes;
}

// Fills rows, faults and machine.
void predict_healthy(const DoctorInputs& inputs, Hypotheses& made) {
  for (std::size_t run = 0; run < inputs.runs.size(); ++run) {
    const DoctorRun& of = inputs.runs[run];
    NcclSession session(of.item, inputs.cluster, inputs.profile, of.operation, sizes_of(of));
    made.machine = session.machine();
    const std::vector<LimitShare> limits = largest_limits(session, inputs.profile);
    for (std::size_t row = 0; row < session.rows(); ++row) {
      made.rows.push_back({.run = run,
                           .size = of.points[row].size,
                           .time = session.time(row),
                           .how = session.how(row),
                           .limit = limits[row]});
    }
    if (run == 0) {
      made.faults = faults_of({.cluster = inputs.cluster,
                               .item = of.item,
                               .communicator = session.communicator(),
                               .machine = made.machine});
    }
  }
}

// Throws ConfigError, also for a machine that falls apart.
std::vector<double> log_times_of(const DoctorInputs& inputs, const FaultVariant& variant) {
  std::optional<Cluster> broken;
  if (variant.machine) {
    broken = variant.machine(inputs.cluster);
    if (const auto reason = describe_unreachable(*broken)) {
      throw ConfigError(*reason);
    }
  }
  const nccl::Profile profile =
      variant.gpu_speed < 1.0 ? with_gpu_speed(inputs.profile, variant.gpu_speed) : inputs.profile;
  std::vector<double> times;
  for (const DoctorRun& run : inputs.runs) {
    ValidationCase item = run.item;
    item.environment.insert(item.environment.end(), variant.environment.begin(),
                            variant.environment.end());
    NcclSession session(item, broken ? *broken : inputs.cluster, profile, run.operation,
                        sizes_of(run));
    for (std::size_t row = 0; row < session.rows(); ++row) {
      times.push_back(log_of(session.time(row)));
    }
  }
  return times;
}

std::vector<LogPoint> log_points(const Hypotheses& hypotheses) {
  std::vector<LogPoint> points;
  for (const HealthyRow& row : hypotheses.rows) {
    points.push_back({.run = row.run, .size = row.size});
  }
  return points;
}

Verdict verdict_of(SimTime measured, const TimeInterval& expected) {
  return expected.holds(measured)  ? Verdict::Within
         : measured < expected.low ? Verdict::Below
                                   : Verdict::Above;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  static constexpr std::array<std::string_view, 3> kNames{"below", "within", "above"};
  return kNames.at(static_cast<std::size_t>(verdict));
}

Hypotheses predict_hypotheses(const DoctorInputs& inputs, const TaskRunner& run_tasks) {
  CHECK(!inputs.runs.empty(), "a log has a run");
  Hypotheses made;
  predict_healthy(inputs, made);
  Candidate& healthy = made.candidates.emplace_back();
  for (const HealthyRow& row : made.rows) {
    healthy.log_times.push_back(log_of(row.time));
  }
  std::vector<Candidate> tried;
  for (std::size_t fault = 1; fault < made.faults.size(); ++fault) {
    for (std::size_t variant = 0; variant < made.faults[fault].variants.size(); ++variant) {
      tried.push_back({.fault = fault, .log_times = {}, .variant = variant});
    }
  }
  std::vector<std::string> refused(tried.size());  // Why there are no times.
  run_tasks(tried.size(), [&](std::size_t index) {
    Candidate& one = tried[index];
    try {
      one.log_times = log_times_of(inputs, made.faults[one.fault].variants[one.variant]);
    } catch (const ConfigError& error) {
      refused[index] = error.what();
    }
  });
  for (std::size_t index = 0; index < tried.size(); ++index) {
    std::string& left_out = made.faults[tried[index].fault].left_out;
    if (!refused[index].empty()) {
      left_out = left_out.empty() ? refused[index] : left_out;
    } else {
      made.candidates.push_back(std::move(tried[index]));
    }
  }
  // A fault of which one variant could be simulated was tried.
  for (const Candidate& one : made.candidates) {
    made.faults[one.fault].left_out.clear();
  }
  return made;
}

ErrorModel error_model(const nccl::MachineKind& machine, const Intervals& intervals) {
  return error_model(intervals.is_known(machine) ? family_of(machine) : kUnlikeAny);
}

DoctorResult examine(Hypotheses hypotheses, std::span<const DoctorRun> runs,
                     const Intervals& intervals) {
  DoctorResult result;
  std::vector<double> log_measured;
  std::size_t row = 0;
  for (const DoctorRun& run : runs) {
    for (const DoctorPoint& point : run.points) {
      const HealthyRow& healthy = hypotheses.rows.at(row++);
      const TimeInterval expected =
          intervals.around(healthy.time, hypotheses.machine, healthy.size);
      result.rows.push_back({.healthy = healthy,
                             .measured = point.time,
                             .expected = expected,
                             .verdict = verdict_of(point.time, expected)});
      result.above += result.rows.back().verdict == Verdict::Above ? 1U : 0U;
      result.below += result.rows.back().verdict == Verdict::Below ? 1U : 0U;
      log_measured.push_back(log_of(point.time));
    }
  }
  const Diagnoser diagnoser(error_model(hypotheses.machine, intervals), log_points(hypotheses),
                            hypotheses.candidates);
  result.diagnosis = diagnoser.diagnose(log_measured);
  if (result.is_slow()) {
    result.diagnosis = given_a_fault(std::move(result.diagnosis));
  }
  result.is_known_kind = intervals.is_known(hypotheses.machine);
  result.hypotheses = std::move(hypotheses);
  return result;
}

}  // namespace trainyard
