// SPDX-License-Identifier: Apache-2.0
// Files of measurements as `trainyard calibrate` takes them: what they are is seen from what they
// hold, and damage costs no more than the rows that it is in (docs/commands/calibrate.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/hosts/host_set.h"
#include "calibration/machine/profile_calibration.h"
#include "calibration/machine/rate_rows.h"
#include "calibration/measured/pasted_output.h"

namespace trainyard {

struct MeasurementFile {
  std::string name;
  std::string_view kind;  // "nccl-tests", "YAML table", "measurement set", "nvbandwidth", ...
  std::vector<CalibrationTable> tables = {};
  std::optional<PastedOutput> links = {};
  std::vector<RateTable> rates = {};  // Rates of the first GPU,
  std::string gpu = {};               // which has this name.
  std::optional<HostSet> host = {};   // A file of trainyard-calibrate-hosts has it alone.
  // A line for each thing that is wrong, with its place.
  std::vector<std::string> warnings = {};
};

// `name` represents the file. Throws ConfigError for a file of no kind that is known, and where
// nothing in it can be used.
[[nodiscard]] MeasurementFile read_measurements(const std::string& text, const std::string& name);

// Tables that another file has as well, row by row, are left out, with a warning.
void drop_copies(std::vector<MeasurementFile>& files);

}  // namespace trainyard
