// SPDX-License-Identifier: Apache-2.0
// The machines whose rings RCCL does not search for: it has orders of GPUs ready for them, which
// use every xGMI link equally, and knows the machine by its links and its number of NICs. Source:
// ROCm/rccl @0cbce2a7, src/graph/rome_models.cc.
#pragma once

#include <optional>

#include "nccl/machine/machine.h"
#include "nccl/search/graph.h"

namespace trainyard::nccl {

// Returns rings and trees of a machine that RCCL knows; nothing for others and for NVIDIA's.
[[nodiscard]] std::optional<GraphSet> known_graphs(const Machine& machine);

}  // namespace trainyard::nccl
