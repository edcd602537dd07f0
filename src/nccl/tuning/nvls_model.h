// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner believes this of NVLS and NVLSTree, by release (NvlsModel; src/graph/tuning.cc:
// ncclTopoTuneModel).
#pragma once

#include "nccl/search/graph.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

// Returns whether the release has the algorithm for the function.
[[nodiscard]] bool has_nvls(const Communicator& communicator, Function function,
                            Algorithm algorithm);

// GB/s of all channels.
[[nodiscard]] float nvls_bandwidth(const Communicator& communicator, Function function,
                                   Algorithm algorithm, const Graph& graph);

// The ratio of the payload's bandwidth to that; rings would take `steps`.
[[nodiscard]] float nvls_ratio(const Communicator& communicator, Function function,
                               Algorithm algorithm, int steps);

}  // namespace trainyard::nccl
