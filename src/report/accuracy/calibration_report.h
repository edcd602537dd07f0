// SPDX-License-Identifier: Apache-2.0
// Prints the results of `trainyard calibrate`: errors before and after, inside the fit and kept out
// of it, each constant with its interval, its rows and its mark, or why it stays as it was, and
// links beside the simulator's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/hosts/host_calibration.h"
#include "calibration/machine/profile_calibration.h"
#include "calibration/machine/rate_calibration.h"
#include "calibration/measured/link_comparison.h"
#include "report/formats/document.h"

namespace trainyard {

struct CalibrationReport {
  std::string cluster;
  std::optional<ProfileCalibration> calibration = {};  // None without a table of a collective.
  std::vector<LinkComparison> links = {};
  std::optional<RateCalibration> rates = {};  // None without kernels of a GPU.
  std::optional<HostCalibration> host = {};   // None without measurements of a host.
};

// The text form leaves constants out that no row moves with, but for their number. CSV has the
// constants alone, all of them, or, without any, the rates of kernels, or else the links; JSON has
// everything.
[[nodiscard]] Document document_of(const CalibrationReport& report);

}  // namespace trainyard
