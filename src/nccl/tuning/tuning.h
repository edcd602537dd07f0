// SPDX-License-Identifier: Apache-2.0
// NCCL's tuning model: for each function, algorithm and protocol a latency and a bandwidth, from
// what the graph search found (NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel). Equations and
// what differs between releases: docs/models/nccl-tuning.md.
#pragma once

#include <optional>

#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

// Takes all from the communicator but what comes of the table; of graphs those that are aligned.
// There are at least two ranks.
[[nodiscard]] TuningTable make_tuning_table(const Communicator& communicator,
                                            const Environment& environment);

// NCCL's estimate in microseconds (ncclTopoGetAlgoTime), in float as there; nothing where the
// combination is not available. `bytes` is the larger of all that one rank sends and all that it
// receives, `operations` in a row, one behind the other on each channel.
[[nodiscard]] std::optional<float> algorithm_time(const Communicator& communicator,
                                                  Function function, Algorithm algorithm,
                                                  Protocol protocol, Bytes bytes, int operations);

}  // namespace trainyard::nccl
