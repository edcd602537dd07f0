// SPDX-License-Identifier: Apache-2.0
// Prints what `trainyard calibrate` made of measurements of a host: the errors of the rows that it
// fitted to, the costs of MPI's messages with their intervals, and the collectives of the same
// host, to which nothing was fitted, beside their predictions.
#pragma once

#include "calibration/hosts/host_calibration.h"
#include "report/formats/document.h"

namespace trainyard {

void add_host(const HostCalibration& calibration, Document& document);

}  // namespace trainyard
