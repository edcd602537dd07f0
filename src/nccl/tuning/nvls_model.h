// SPDX-License-Identifier: Apache-2.0
// NCCL's tuner believes this of NVLS and NVLSTree, by release (NvlsModel; src/graph/tuning.cc:
// ncclTopoTuneModel).
#pragma once

#include "nccl/search/graph.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

// Returns whether the release has the algorithm for the function.
[[nodiscard]] bool has_nvls(const Communicator& communicator, Function function,
                            Algorithm algorithm);

// Returns whether NVLSTree joins the nodes. No rule of NCCL forbids it between NVLink domains of
// more GPUs than NVLS has heads, but the times of two such clusters are those of trees and rings,
// with their steps (docs/models/nccl-tuning.md). With NCCL_NVLS_ENABLE=1 it is planned there, too.
[[nodiscard]] bool joins_by_nvls_tree(const Communicator& communicator,
                                      const Environment& environment);

// GB/s of all channels.
[[nodiscard]] float nvls_bandwidth(const Communicator& communicator, Function function,
                                   Algorithm algorithm, const Graph& graph);

// The ratio of the payload's bandwidth to that; rings would take `steps`.
[[nodiscard]] float nvls_ratio(const Communicator& communicator, Function function,
                               Algorithm algorithm, int steps);

}  // namespace trainyard::nccl
