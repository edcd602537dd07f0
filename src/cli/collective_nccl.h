// SPDX-License-Identifier: Apache-2.0
// The runtime nccl of `trainyard collective`: NCCL's choices, timed by its event model.
#pragma once

#include <spdlog/logger.h>

#include "cli/collective_inputs.h"
#include "cli/collective_request.h"
#include "report/collective_report.h"

namespace trainyard {

// `request` must have `nccl`; takes the notes of `inputs`. Throws ConfigError for clusters that
// NCCL or the model cannot take, and for what is forced where NCCL does not have it.
[[nodiscard]] CollectiveReport run_nccl(const CollectiveRequest& request, CollectiveInputs& inputs,
                                        spdlog::logger& log);

}  // namespace trainyard
