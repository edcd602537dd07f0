// SPDX-License-Identifier: Apache-2.0
// Channels and chunks of NVLS (NVIDIA/nccl, src/transport/nvls.cc, ncclNvlsTuning).
#pragma once

#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "sim/units.h"

namespace trainyard::nccl {

struct NvlsSetup {
  int channels = 0;
  Bytes chunk;       // At most; also a step of the buffers.
  Bytes tree_chunk;  // At most, in NVLSTree.
};

// For a communicator whose `aligned` has a graph of NVLS.
[[nodiscard]] NvlsSetup nvls_setup(const Communicator& communicator,
                                   const Environment& environment);

}  // namespace trainyard::nccl
