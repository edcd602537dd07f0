// SPDX-License-Identifier: Apache-2.0
#include "calibrate/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <optional>
#include <ostream>

#include "calibrate/rendezvous.h"
#include "calibrate/text.h"
#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

constexpr int kMachinePatience = 120;

// The last line is what the child said of its end; libraries speak before.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) {
    return "";
  }
  const std::size_t before = text.rfind('\n', end);
  const std::size_t first = before == std::string::npos ? 0 : before + 1;
  return one_line(std::string_view(text).substr(first, end - first + 1));
}

std::string why_failed(const ChildEnd& end) {
  std::string said = last_line(end.error);
  if (end.signal != 0) {
    return fmt::format("ended by signal {}{}{}", end.signal, said.empty() ? "" : ": ", said);
  }
  if (!said.empty()) {
    return said;
  }
  return fmt::format("ended with status {} and without a word", end.status);
}

ChildEnd run_measurement_child(const Options& options, const std::string& id,
                               const std::string& token, int patience_seconds) {
  return run_child(own_program(), child_arguments(options, id, token),
                   std::chrono::seconds(patience_seconds));
}

// Announces measurements to the other ranks, if there are any.
class Leader {
 public:
  explicit Leader(const Options& options) : folder_(options.rendezvous) {
    if (options.ranks > 1) {
      folder_.open_as_leader();
      leads_ = true;
    }
  }
  // Returns the token of the measurement.
  std::string announce(const std::string& id) {
    std::string token = fmt::format("{}", next_++);
    if (leads_) {
      folder_.publish("measure." + token, id);
    }
    return token;
  }
  void finish() { (void)announce(""); }

 private:
  Rendezvous folder_;
  bool leads_ = false;
  int next_ = 0;
};

ResultSet new_set(const Options& options, const std::string& backend, const Machine& machine) {
  ResultSet set;
  set.backend = backend;
  set.started = utc_now();
  set.repetitions = options.repetitions;
  set.warmup = options.warmup;
  set.ranks = options.ranks;
  set.only = options.only;
  set.machine = machine;
  return set;
}

// All but what was measured is tried again.
void go_on_with(const Options& options, ResultSet& set) {
  ResultSet old = read_result_set(options.output);
  const std::string reason = why_another_run(old, set);
  if (!reason.empty()) {
    throw ConfigError(fmt::format("--resume: {}: {}", one_line(options.output), reason));
  }
  set.started = old.started;
  for (Result& result : old.results) {
    if (result.status == Status::Measured) {
      set.results.push_back(std::move(result));
    }
  }
}

bool has_result(const ResultSet& set, const std::string& id) {
  return std::any_of(set.results.begin(), set.results.end(),
                     [&id](const Result& result) { return result.id == id; });
}

void refuse_to_overwrite(const Options& options) {
  std::error_code error;
  if (!options.resume && std::filesystem::exists(options.output, error)) {
    throw ConfigError(
        fmt::format("--output: {} exists: --resume continues with it", one_line(options.output)));
  }
}

// Where NCCL does not run as it chooses itself, forcing it would cost a watchdog's patience each.
std::string why_hopeless(const Measurement& measurement, const ResultSet& set) {
  if (!measurement.nccl) {
    return "";
  }
  const std::string first = first_of_mode(measurement.nccl->mode);
  for (const Result& result : set.results) {
    if (result.id == first && result.id != measurement.id &&
        (result.status == Status::Failed || result.status == Status::TimedOut)) {
      return fmt::format("{} {}", first, to_string(result.status));
    }
  }
  return "";
}

Result take(const Measurement& measurement, const Options& options, const ResultSet& set,
            Leader& leader) {
  std::string reason = why_not(measurement, set.machine);
  if (reason.empty()) {
    reason = why_hopeless(measurement, set);
  }
  if (!reason.empty()) {
    return {.id = measurement.id,
            .status = Status::NotMeasured,
            .reason = reason,
            .seconds = 0.0,
            .samples = {},
            .records = {}};
  }
  const std::string token = leader.announce(measurement.id);
  const int patience = timeout_of(measurement, options);
  return result_of(measurement.id, run_measurement_child(options, measurement.id, token, patience),
                   patience);
}

// A rank other than 0: takes part in what rank 0 announces.
bool follow(const Options& options, std::ostream& log) {
  const Rendezvous folder{std::filesystem::path(options.rendezvous)};
  for (int next = 0;; ++next) {
    const std::string token = std::to_string(next);
    // The leader is at most as slow as its slowest measurement.
    const auto id = folder.await("measure." + token, std::chrono::minutes(30));
    if (!id) {
      log << "rank 0 said nothing for 30 minutes\n";
      return false;
    }
    if (id->empty()) {
      return true;
    }
    const auto is_it = [&id](const Measurement& each) { return each.id == *id; };
    const auto found = std::find_if(catalogue().begin(), catalogue().end(), is_it);
    if (found == catalogue().end()) {
      throw ConfigError(
          fmt::format("--rendezvous: expected a measurement, found {}", in_quotes(*id)));
    }
    // What fails here fails or times out at rank 0, which writes it down.
    (void)run_measurement_child(options, *id, token, timeout_of(*found, options));
  }
}

}  // namespace

Result result_of(const std::string& id, const ChildEnd& end, int patience_seconds) {
  Result result;
  result.id = id;
  result.seconds = end.seconds;
  ChildReport report;
  std::string nonsense;
  try {
    report = parse_child_output(end.output);
  } catch (const std::exception& error) {
    nonsense = one_line(error.what());
  }
  result.samples = std::move(report.samples);
  result.records = std::move(report.records);
  if (end.timed_out) {
    result.status = Status::TimedOut;
    result.reason = fmt::format("no end within {} s; killed", patience_seconds);
  } else if (end.signal != 0 || end.status != 0 || (!report.ended && nonsense.empty())) {
    result.status = Status::Failed;
    result.reason = why_failed(end);
  } else if (!nonsense.empty()) {
    result.status = Status::Failed;
    result.reason = "its output cannot be read: " + nonsense;
  } else if (!report.not_measured.empty()) {
    result.status = Status::NotMeasured;
    result.reason = one_line(report.not_measured);
  } else if (result.samples.empty()) {
    result.status = Status::Failed;
    result.reason = "it found nothing";
  } else {
    result.status = Status::Measured;
  }
  return result;
}

Machine detect_machine(const Options& options) {
  const ChildEnd end = run_measurement_child(options, "machine", "", kMachinePatience);
  ChildReport report;
  if (!end.timed_out && end.signal == 0 && end.status == 0) {
    report = parse_child_output(end.output);
  }
  if (report.machine.empty()) {
    throw ConfigError(
        end.timed_out
            ? fmt::format("this machine's devices did not answer within {} s", kMachinePatience)
            : why_failed(end));
  }
  return report.machine.front();
}

Progress::Progress(const std::vector<Measurement>& plan) {
  for (const Measurement& each : plan) {
    expected_left_ += each.seconds;
  }
}

void Progress::finish(const Measurement& measurement, double seconds) {
  expected_left_ -= measurement.seconds;
  if (seconds > 0.0) {
    expected_done_ += measurement.seconds;
    taken_ += seconds;
  }
}

double Progress::seconds_left() const {
  // The estimate counts as a minute of experience, so that the first measurements do not decide.
  constexpr double kPrior = 60.0;
  return expected_left_ * (taken_ + kPrior) / (expected_done_ + kPrior);
}

std::string duration_text(double seconds) {
  const long whole = std::lround(seconds);
  return whole < 60 ? fmt::format("{} s", whole)
                    : fmt::format("{} min {} s", whole / 60, whole % 60);
}

bool run_session(const Options& options, const std::string& backend, const Machine& machine,
                 std::ostream& log) {
  if (options.rank > 0) {
    return follow(options, log);
  }
  refuse_to_overwrite(options);
  const std::vector<Measurement> plan = planned(options);
  ResultSet set = new_set(options, backend, machine);
  if (options.resume) {
    go_on_with(options, set);
  }
  set.updated = utc_now();
  write_result_set(options.output, set);  // Fails now rather than after the first measurement.
  Leader leader(options);
  Progress progress(plan);
  bool all_well = true;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Measurement& measurement = plan[i];
    if (has_result(set, measurement.id)) {
      progress.finish(measurement, 0.0);
      continue;
    }
    log << fmt::format("[{}/{}, {} left] {} ... ", i + 1, plan.size(),
                       duration_text(progress.seconds_left()), measurement.id)
        << std::flush;
    const Result result = take(measurement, options, set, leader);
    progress.finish(measurement, result.seconds);
    log << (result.status == Status::Measured
                ? fmt::format("{} samples, {}", result.samples.size(),
                              duration_text(result.seconds))
                : fmt::format("{}: {}", to_string(result.status), result.reason))
        << std::endl;
    all_well = all_well && result.status != Status::Failed && result.status != Status::TimedOut;
    set.results.push_back(result);
    set.updated = utc_now();
    write_result_set(options.output, set);
  }
  leader.finish();
  set.complete = true;
  write_result_set(options.output, set);
  return all_well;
}

}  // namespace trainyard::calibrate
