// SPDX-License-Identifier: Apache-2.0
// Collectives of NCCL, as nccl-tests times them: calls one after the other without a wait between
// them, and the time of all over their number.
#pragma once

#include <string>

#include "calibrate/catalogue.h"
#include "calibrate/options.h"
#include "calibrate/samples.h"

namespace trainyard::calibrate {

// In a process that has not used NCCL before. Starts the ranks of this node where the setting wants
// processes and no launcher has made them.
void measure_nccl(const std::string& id, const NcclSetting& setting, const Options& options,
                  SampleSink& sink);

}  // namespace trainyard::calibrate
