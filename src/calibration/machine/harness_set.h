// SPDX-License-Identifier: Apache-2.0
// Measurement sets of the harness trainyard-calibrate (docs/accuracy/harness.md has the schema):
// what of them is used here. The harness itself enforces the whole schema (--check).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "calibration/machine/profile_calibration.h"
#include "calibration/measured/pasted_output.h"

namespace trainyard {

struct HarnessSample {
  std::string id;        // Id of the measurement: "gpu.memory".
  std::string quantity;  // "copy bandwidth".
  std::string unit;      // "us", "GB/s", "TFLOP/s", ...
  std::map<std::string, std::variant<double, std::string>> parameters;
  double median = 0.0;
  double p10 = 0.0;
  double p90 = 0.0;

  // These return 0 or "" where nothing has that name and kind.
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;
};

struct HarnessSet {
  std::string nccl;               // "2.27.7"; empty if there was none.
  std::vector<std::string> gpus;  // Names.
  int repetitions = 0;            // Each time was measured so often.
  int warmup = 0;                 // So many repetitions came before the first that counts.
  std::vector<HarnessSample> samples;
  std::vector<std::string> warnings;  // "NAME: ID: ...": what failed, and what is of no use here.
};

// Returns whether the text is such a set, by its format.
[[nodiscard]] bool is_harness_set(std::string_view text);
// Throws ConfigError for JSON that is not whole or lacks what is needed.
[[nodiscard]] HarnessSet parse_harness_set(const std::string& text, const std::string& name);

// The collectives of the modes in which every rank has a GPU of its own: a table for each
// measurement and operation, with the variables that forced it.
[[nodiscard]] std::vector<CalibrationTable> collective_tables(const HarnessSet& set,
                                                              const std::string& name);

// Copies by copy engines between host and first GPU and between peers, under the names that
// nvbandwidth has for the same transfers.
[[nodiscard]] PastedOutput copy_rates(const HarnessSet& set);

}  // namespace trainyard
