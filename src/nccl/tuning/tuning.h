// SPDX-License-Identifier: Apache-2.0
// NCCL's tuning model: for each function, algorithm and protocol a latency and a bandwidth, from
// what the graph search found (NVIDIA/nccl, src/graph/tuning.cc, ncclTopoTuneModel). Equations and
// what differs between releases: docs/models/nccl-tuning.md.
#pragma once

#include <optional>

#include "nccl/search/graph.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

struct TuningInput {
  Version version = kNewestVersion;
  int ranks = 2;  // At least 2.
  int nodes = 1;
  int max_ranks_per_node = 2;
  int min_compute_capability = 0;  // 70, 80, 90, ...
  int greatest_compute_capability = 0;
  CpuKind cpu = CpuKind::Intel;
  // The least over all ranks. `tree.pattern` is Tree where any node uses it. Without `nvls` there
  // is no NVLS and no NVLSTree.
  GraphSet graphs = {};
  bool nvswitch = false;  // All GPUs of a node are on one.
  bool collnet = false;   // The network adds up in its switches (SHARP), but does not gather there.
};

// `input.ranks` must be at least 2.
[[nodiscard]] TuningTable make_tuning_table(const TuningInput& input,
                                            const Environment& environment);

// NCCL's estimate in microseconds (ncclTopoGetAlgoTime), in float as there; nothing where the
// combination is not available. `bytes` is the larger of all that one rank sends and all that it
// receives, `operations` in a row, one behind the other on each channel.
[[nodiscard]] std::optional<float> algorithm_time(const Communicator& communicator,
                                                  Function function, Algorithm algorithm,
                                                  Protocol protocol, Bytes bytes, int operations);

}  // namespace trainyard::nccl
