// SPDX-License-Identifier: Apache-2.0
// The measurement set: one JSON file that holds the machine, the options and each measurement with
// its samples. docs/accuracy/harness.md describes the schema; read_result_set enforces it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/machine.h"
#include "calibrate/options.h"
#include "calibrate/samples.h"

namespace trainyard::calibrate {

enum class Status { Measured, NotMeasured, Failed, TimedOut };

struct Result {
  std::string id;
  Status status = Status::Failed;
  std::string reason;  // One line; empty if and only if Measured.
  double seconds = 0.0;
  // What came before a failure or the watchdog is kept.
  std::vector<Sample> samples;
  std::vector<Record> records;
};

struct ResultSet {
  std::string backend;
  std::string started;  // UTC, as 2026-01-31T23:59:59Z; so is the next.
  std::string updated;
  bool complete = false;  // Nothing of the plan is left.
  int repetitions = 0;
  int warmup = 0;
  int ranks = 1;
  std::vector<std::string> only;
  Machine machine;
  std::vector<Result> results;
};

// Why the run of `old` cannot go on as `now`, as "expected ..., found ..."; empty if it can.
[[nodiscard]] std::string why_another_run(const ResultSet& old, const ResultSet& now);

// In whole or not at all: writes beside the file and renames. Throws ConfigError.
void write_result_set(const std::filesystem::path& file, const ResultSet& set);
// Throws ConfigError with the file and what is wrong in it: nothing unknown, nothing missing, each
// count and number in its range, each identifier once.
[[nodiscard]] ResultSet read_result_set(const std::filesystem::path& file);
// The same for text; `name` represents the file in errors.
[[nodiscard]] ResultSet parse_result_set(const std::string& text, const std::string& name);

// The lines by which a child tells its parent what it found: one JSON document each.
[[nodiscard]] std::string machine_line(const Machine& machine);
[[nodiscard]] std::string sample_line(const Sample& sample);
[[nodiscard]] std::string record_line(const Record& record);
[[nodiscard]] std::string end_line();
[[nodiscard]] std::string not_measured_line(const std::string& reason);

// What a child said before it ended, whole lines only.
struct ChildReport {
  bool ended = false;        // It said that nothing follows.
  std::string not_measured;  // The reason; empty if it took the measurement.
  std::vector<Machine> machine;
  std::vector<Sample> samples;
  std::vector<Record> records;
};
// Throws std::runtime_error for lines that no child writes.
[[nodiscard]] ChildReport parse_child_output(std::string_view output);

[[nodiscard]] std::string_view to_string(Status status);
[[nodiscard]] std::string utc_now();

}  // namespace trainyard::calibrate
