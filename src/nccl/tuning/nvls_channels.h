// SPDX-License-Identifier: Apache-2.0
// Channels and chunks of NVLS (NVIDIA/nccl, src/transport/nvls.cc, ncclNvlsTuning).
#pragma once

#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

struct NvlsInput {
  Version version = kNewestVersion;
  int compute_capability = 90;  // The least of all GPUs.
  int nodes = 1;
  int min_ranks_per_node = 8;
  double nic_bandwidth = 0.0;         // GB/s of the slowest NIC; several nodes only.
  PathType nic_path = PathType::Pix;  // `type_inter` of the graph.
};

struct NvlsSetup {
  int channels = 0;
  Bytes chunk;       // At most; also a step of the buffers.
  Bytes tree_chunk;  // At most, in NVLSTree.
};

[[nodiscard]] NvlsSetup nvls_setup(const NvlsInput& input, const Environment& environment);

}  // namespace trainyard::nccl
