// SPDX-License-Identifier: Apache-2.0
// The runtime hccl of `trainyard collective`: what HCCL chooses, timed on the executor.
#pragma once

#include <spdlog/logger.h>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_nccl.h"
#include "cli/collective/collective_request.h"

namespace trainyard {

// Runs every size. The request must have HCCL's variables. Throws ConfigError for what HCCL or the
// model does not have; runs that never were complete are logged.
[[nodiscard]] CollectiveOutcome run_hccl(const CollectiveRequest& request, CollectiveInputs& inputs,
                                         spdlog::logger& log);

}  // namespace trainyard
