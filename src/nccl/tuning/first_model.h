// SPDX-License-Identifier: Apache-2.0
// How NCCL 2.4 chooses, before it had a tuning model (NVIDIA/nccl v2.4.7-1, src/init.cc:
// ncclTreeThreshold; src/enqueue.cc: getKernelInfo): trees up to the size at which two straight
// lines cross, which here are the estimates; LL up to a size for each thread.
#pragma once

#include <optional>

#include "nccl/tuning/communicator.h"

namespace trainyard::nccl {

inline constexpr int kFirstModelThreads = 256;  // src/include/devcomm.h: MAXTHREADS.

// The line of an algorithm; nothing where it is not used.
[[nodiscard]] std::optional<TuningCell> first_model_cell(const Communicator& communicator,
                                                         Function function, Algorithm algorithm,
                                                         Protocol protocol);

// The largest payload that LL carries, all ranks together for AllGather and ReduceScatter.
[[nodiscard]] Bytes first_model_ll_threshold(const Communicator& communicator, Function function,
                                             Algorithm algorithm);

// Returns whether 2.4 leaves the call, which would take `protocol`, to Simple; no other release
// does.
[[nodiscard]] bool first_model_takes_simple(const Communicator& communicator, Function function,
                                            Algorithm algorithm, Protocol protocol, Bytes bytes);

}  // namespace trainyard::nccl
