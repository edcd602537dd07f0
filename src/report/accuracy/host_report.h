// SPDX-License-Identifier: Apache-2.0
// Prints what `trainyard calibrate` made of measurements of a host: the errors of the rows that it
// fitted to, the costs of MPI's messages with their intervals, and the collectives of the same
// host, to which nothing was fitted, beside their predictions; and what `trainyard validate` says
// of hosts.
#pragma once

#include <string>
#include <vector>

#include "calibration/hosts/host_calibration.h"
#include "calibration/hosts/host_validation.h"
#include "report/formats/document.h"

namespace trainyard {

void add_host(const HostCalibration& calibration, Document& document);

struct HostValidationReport {
  struct Host {
    HostSet set;
    HostPredictions predictions;
  };
  std::string profile;  // As the user names it.
  std::vector<Host> hosts = {};
};

[[nodiscard]] Document document_of(const HostValidationReport& report);

}  // namespace trainyard
