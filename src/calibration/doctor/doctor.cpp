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

// Throws for a machine that falls apart.
Cluster changed(const Cluster& cluster, const FaultVariant& variant) {
  Cluster broken = variant.machine(cluster);
  if (const auto reason = describe_unreachable(broken)) {
    throw ConfigError(*reason);
  }
  return broken;
}

class Simulations {
 public:
  Simulations(const Cluster& cluster, const Catalogue& catalogue, const nccl::Profile& profile,
              std::span<const DoctorRun> runs)
      : cluster_(cluster), catalogue_(catalogue), profile_(profile), runs_(runs) {}

  // Fills rows and machine.
  std::vector<MachineFault> healthy(Hypotheses& made) const {
    std::vector<MachineFault> faults;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      NcclSession session(runs_[run].item, cluster_, catalogue_, profile_, runs_[run].operation,
                          sizes_of(runs_[run]));
      made.machine = session.machine();
      const std::vector<LimitShare> limits = largest_limits(session, profile_);
      for (std::size_t row = 0; row < session.rows(); ++row) {
        made.rows.push_back({.run = run,
                             .size = runs_[run].points[row].size,
                             .time = session.time(row),
                             .how = session.how(row),
                             .limit = limits[row]});
      }
      if (run == 0) {
        faults = faults_of({.cluster = cluster_,
                            .item = runs_[0].item,
                            .communicator = session.communicator(),
                            .machine = made.machine});
      }
    }
    return faults;
  }

  [[nodiscard]] std::vector<double> log_times(const FaultVariant& variant) const {
    std::optional<Cluster> broken;
    if (variant.machine) {
      broken = changed(cluster_, variant);
    }
    const nccl::Profile profile =
        variant.gpu_speed < 1.0 ? with_gpu_speed(profile_, variant.gpu_speed) : profile_;
    std::vector<double> times;
    for (const DoctorRun& run : runs_) {
      ValidationCase item = run.item;
      item.environment.insert(item.environment.end(), variant.environment.begin(),
                              variant.environment.end());
      NcclSession session(item, broken ? *broken : cluster_, catalogue_, profile, run.operation,
                          sizes_of(run));
      for (std::size_t row = 0; row < session.rows(); ++row) {
        times.push_back(log_of(session.time(row)));
      }
    }
    return times;
  }

 private:
  const Cluster& cluster_;
  const Catalogue& catalogue_;
  const nccl::Profile& profile_;
  std::span<const DoctorRun> runs_;
};

struct Simulated {
  std::size_t fault = 0;
  std::size_t variant = 0;
  std::vector<double> log_times = {};
  std::string refused = {};  // Why there are none.
};

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

Hypotheses predict_hypotheses(const Cluster& cluster, const Catalogue& catalogue,
                              const nccl::Profile& profile, std::span<const DoctorRun> runs,
                              const TaskRunner& run_tasks) {
  CHECK(!runs.empty(), "a log has a run");
  const Simulations simulations(cluster, catalogue, profile, runs);
  Hypotheses made;
  made.faults = simulations.healthy(made);
  std::vector<Simulated> all;
  for (std::size_t fault = 1; fault < made.faults.size(); ++fault) {
    for (std::size_t variant = 0; variant < made.faults[fault].variants.size(); ++variant) {
      all.push_back({.fault = fault, .variant = variant});
    }
  }
  run_tasks(all.size(), [&](std::size_t index) {
    Simulated& one = all[index];
    try {
      one.log_times = simulations.log_times(made.faults[one.fault].variants[one.variant]);
    } catch (const ConfigError& error) {
      one.refused = error.what();
    }
  });
  Candidate healthy;
  for (const HealthyRow& row : made.rows) {
    healthy.log_times.push_back(log_of(row.time));
  }
  made.candidates.push_back(std::move(healthy));
  made.variants.push_back(0);
  std::vector<bool> simulated(made.faults.size());
  for (Simulated& one : all) {
    if (one.refused.empty()) {
      made.candidates.push_back({.fault = one.fault, .log_times = std::move(one.log_times)});
      made.variants.push_back(one.variant);
      simulated[one.fault] = true;
    } else if (made.faults[one.fault].left_out.empty()) {
      made.faults[one.fault].left_out = one.refused;
    }
  }
  // A fault of which one variant could be simulated was tried.
  for (std::size_t fault = 1; fault < made.faults.size(); ++fault) {
    if (simulated[fault]) {
      made.faults[fault].left_out.clear();
    }
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
      result.outside += result.rows.back().verdict == Verdict::Within ? 0U : 1U;
      log_measured.push_back(log_of(point.time));
    }
  }
  const Diagnoser diagnoser(error_model(hypotheses.machine, intervals), log_points(hypotheses),
                            hypotheses.candidates);
  result.diagnosis = diagnoser.diagnose(log_measured);
  result.is_known_kind = intervals.is_known(hypotheses.machine);
  result.hypotheses = std::move(hypotheses);
  return result;
}

}  // namespace trainyard
