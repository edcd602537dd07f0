// SPDX-License-Identifier: Apache-2.0
// NCCL's graph search: for each pattern, how many channels of what bandwidth a node carries, in
// which order of GPUs and with which NICs (docs/models/nccl-search.md).
//
// Speeds are tried from a fixed list, fast to slow. For each, what is asked of the channels is
// relaxed step by step; then channels are doubled where they are fast; then speeds are raised again
// as long as as many channels carry them. NVIDIA/nccl, src/graph/search.cc: ncclTopoCompute.
#pragma once

#include "nccl/machine/machine.h"
#include "nccl/search/graph.h"

namespace trainyard::nccl {

// The graphs of one node, GPUs as local ranks and NICs by dev. NVLS and CollNet only where they are
// enabled, possible and found.
[[nodiscard]] GraphSet search_graphs(const Machine& machine);

}  // namespace trainyard::nccl
