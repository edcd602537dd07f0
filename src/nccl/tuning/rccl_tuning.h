// SPDX-License-Identifier: Apache-2.0
// RCCL comes from NCCL and decides otherwise on numbers of channels, by tuning models of its own,
// on the sizes that each protocol gets, and on calls that no ring or tree carries.
//
// A tuning model has latencies, a share of the bandwidth of all channels for each algorithm and
// protocol, and factors of it by size. Machines whose topology RCCL knows name theirs
// (search/rccl_topologies.h); others have the first one. Source: ROCm/rccl, src/graph/tuning.cc
// (rcclTuningModel), src/graph/connect.cc, src/init.cc and src/enqueue.cc @0cbce2a7 (October 2024),
// src/graph/tuning.cc @9e22c79d and src/rccl_wrap.cc @00c78b70 (2025), and the schedules of
// tools/msccl-algorithms.
#pragma once

#include <optional>
#include <string_view>

#include "nccl/tuning/communicator.h"
#include "nccl/tuning/tuning_constants.h"
#include "nccl/types/environment.h"
#include "nccl/types/gpu_generation.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

// Returns how many channels there are for each that its topology has, and at most.
[[nodiscard]] int rccl_copies(const Communicator& communicator);
[[nodiscard]] int rccl_max_channels(const Communicator& communicator);

// Latencies of a tuning model, in the form of NCCL's.
[[nodiscard]] const TuningConstants& rccl_constants(int model);

// Returns the share of the bandwidth of all channels that RCCL expects of an algorithm and
// protocol; 0 where it does not use them.
[[nodiscard]] float rccl_share(const Communicator& communicator, Function function,
                               Algorithm algorithm, Protocol protocol);
// LL128 is for GPUs on xGMI whose NICs are near; on MI200 it must be forced. On MI300X two servers
// with release 2.27 go from 1 to 4 MiB three times as fast as LL and Simple would.
[[nodiscard]] bool rccl_has_ll128(const GpuGeneration& generation, const Graph& graph,
                                  const Environment& environment);

// The factor of that bandwidth for a payload, by log2 of its size in units of 64 bytes.
[[nodiscard]] float rccl_factor(const Communicator& communicator, Algorithm algorithm,
                                Protocol protocol, int log_size);

// Returns the protocol that a size is given, whatever was chosen for it; nothing where the choice
// stands. `bytes` of one rank, as CallPlan counts them.
[[nodiscard]] std::optional<Protocol> rccl_protocol(const Communicator& communicator,
                                                    const Environment& environment,
                                                    Function function, Bytes bytes);

// A call in which all ranks exchange with all others at once (Algorithm::AllPairs).
struct AllPairsCall {
  Protocol protocol = Protocol::Simple;
  int channels = 1;
  std::string_view reason;
};
// Returns how a call goes that a schedule of MSCCL carries, or the direct AllGather; nothing for
// others.
[[nodiscard]] std::optional<AllPairsCall> rccl_all_pairs(const Communicator& communicator,
                                                         const Environment& environment,
                                                         Function function, Bytes bytes);

}  // namespace trainyard::nccl
