// SPDX-License-Identifier: Apache-2.0
// The memory that each rank of a pipeline holds in the course of a step, for programs:
// docs/models/memory.md.
#pragma once

#include <string>

#include "parallelism/memory/step_memory.h"

namespace trainyard {

// CSV: for each rank a line for each pass and one for the optimizer, with the classes of memory at
// the highest moment of it.
[[nodiscard]] std::string memory_profile_csv(const StepMemory& memory);

}  // namespace trainyard
