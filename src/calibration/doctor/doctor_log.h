// SPDX-License-Identifier: Apache-2.0
// The runs of a log: nccl-tests prints one table for each operation, and a file may hold several,
// one behind the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/measured/measurement.h"
#include "collectives/schedule/operation.h"
#include "sim/units.h"

namespace trainyard {

// One table and what the lines around it say.
struct LogRun {
  MeasuredTable table;
  Operation operation = Operation::AllReduce;
  // GPUs of one process (-t times -g of nccl-tests).
  std::optional<int> gpus_per_process = {};
};

struct DoctorLog {
  std::vector<LogRun> runs;  // At least one.
  // The numbers that all of them state, or are told, alike.
  std::optional<int> ranks = {};
  std::optional<int> nodes = {};
  std::optional<int> gpus_per_node = {};
  std::vector<std::string> warnings = {};       // One line each, with FILE or FILE:LINE in front.
  std::vector<std::string> wrong_results = {};  // Likewise: data that came out wrong.
};

// Reads nccl-tests output, or one YAML table. `operation` is for logs that do not say theirs.
// Throws ConfigError, naming `name` and the line, for what cannot be read, for runs of different
// ranks, and for an operation other than the log's.
[[nodiscard]] DoctorLog parse_doctor_log(const std::string& text, const std::string& name,
                                         std::optional<Operation> operation);

// The rows of a table by size, each size once with its median time, of equally many the faster.
// Where the two columns of a row differ by more than a quarter, the smaller one (validation.h).
struct DoctorPoint {
  Bytes size;
  SimTime time;
};
[[nodiscard]] std::vector<DoctorPoint> points_of(const MeasuredTable& table);

}  // namespace trainyard
