// SPDX-License-Identifier: Apache-2.0
// Measured tables: a collective's time per message size on a real machine, read from a YAML table
// (validation/nccl/) or from the text that nccl-tests prints. docs/inputs/measurements.md has the
// formats.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "sim/units.h"

namespace trainyard {

// One measured time with its bandwidths in GB/s (1e9 bytes per second), as the source prints them.
struct MeasuredTime {
  SimTime time;
  double algbw_gbps = 0.0;
  double busbw_gbps = 0.0;
};

struct MeasuredRow {
  Bytes size;
  // Out of place: the result goes to another buffer than the input. These are the compared values.
  SimTime time;
  double algbw_gbps = 0.0;
  double busbw_gbps = 0.0;
  std::optional<MeasuredTime> in_place;
  std::size_t line = 0;  // Line of the log; 0 if it is of no log.
};

// The least and the greatest factor between busbw and algbw that the rows allow (bus_ratio.h).
struct BusRatio {
  double min = 0.0;
  double max = 0.0;
};

// A message of nccl-tests about data that came out wrong.
struct WrongResult {
  std::size_t line = 0;  // Line of the log; 0 if it is about the whole log.
  std::string what;      // "#wrong is 17 at 1048576 B"
};

struct MeasuredTable {
  std::string name;  // The file's name without folder and ending.
  // Author and publication of the measurement, on one line; or "nccl-tests log".
  std::string source;
  // Unknown where a log does not say it.
  std::optional<Operation> operation;
  std::optional<int> ranks;
  std::optional<int> nodes;
  std::optional<int> gpus_per_node;
  // -t, -g and -G of nccl-tests.
  std::optional<int> threads_per_process = {};
  std::optional<int> gpus_per_process = {};
  bool cuda_graph = false;
  bool sizes_are_parts = false;    // Sizes are those of one rank's message (osu_log.h).
  std::string system;              // The measured machine; empty if unknown.
  std::string algorithm_protocol;  // "default", "Ring (forced)"; empty if unknown.
  std::vector<MeasuredRow> rows;   // In the file's order; never empty.
  // Notes for readers of these numbers: recomputed values, rows that contradict themselves.
  std::vector<std::string> remarks;
  // Wrong results of its rows, or what is said of the whole if no row has any.
  std::vector<WrongResult> wrong_results = {};
  std::optional<BusRatio> bus_ratio = {};  // Nothing where the rows do not tell it.
};

// The keys of a YAML table; all but its name.
class ConfigNode;
class Fields;
[[nodiscard]] Operation read_measured_operation(const ConfigNode& node);
void measured_fields(Fields& fields, MeasuredTable& table);
// Returns whether the text looks like a YAML table.
[[nodiscard]] bool is_measured_yaml(std::string_view text);
// Reads a table; YAML or log is decided by content. Throws ConfigError for anything else, with the
// line where there is one. A row is never skipped without a remark.
[[nodiscard]] MeasuredTable load_measurement(const std::filesystem::path& file);
// The same for text; `name` represents the file in errors.
[[nodiscard]] MeasuredTable parse_measurement(const std::string& text, const std::string& name);

}  // namespace trainyard
