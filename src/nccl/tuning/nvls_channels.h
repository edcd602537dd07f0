// SPDX-License-Identifier: Apache-2.0
// Channels and chunks of NVLS (NVIDIA/nccl, src/transport/nvls.cc, ncclNvlsTuning).
#pragma once

#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"

namespace trainyard::nccl {

// Sets nvls_channels, nvls_chunk and nvls_tree_chunk of a communicator whose `aligned` has a graph
// of NVLS.
void set_up_nvls(Communicator& communicator, const Environment& environment);

}  // namespace trainyard::nccl
