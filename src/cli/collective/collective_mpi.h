// SPDX-License-Identifier: Apache-2.0
// The runtimes mpi and gloo of `trainyard collective`: what Open MPI, MPICH and Gloo choose,
// between host memories.
#pragma once

#include <spdlog/logger.h>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_nccl.h"
#include "cli/collective/collective_request.h"

namespace trainyard {

// Runs every size with every algorithm. The request must have rules of MPI or Gloo. Throws
// ConfigError for what the model does not have; runs that never were complete are logged.
[[nodiscard]] CollectiveOutcome run_mpi(const CollectiveRequest& request, CollectiveInputs& inputs,
                                        spdlog::logger& log);

}  // namespace trainyard
