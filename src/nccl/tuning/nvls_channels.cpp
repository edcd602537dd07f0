// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/nvls_channels.h"

#include <algorithm>

#include "nccl/types/gpu_generation.h"

namespace trainyard::nccl {
namespace {

// Applies the newest release's tuning on several nodes from compute capability 100 on
// (ncclNvlsTreeSm100Tuning). A tree chunk of zero represents the general rule.
void tune_blackwell_nodes(Communicator& communicator) {
  constexpr double kNic400 = 48.0;  // GB/s that the search finds for a NIC of 400 Gb/s
  constexpr double kNic800 = 96.0;
  const Graph& graph = communicator.aligned.nvls;
  const int ppn = communicator.min_ranks_per_node();
  const bool near = graph.type_inter <= PathType::Pxb;
  if (communicator.nodes == 2 && graph.bw_inter >= kNic400) {
    communicator.nvls_channels = 32;
    communicator.nvls_tree_chunk = kib(128);
    if (ppn <= 4) {
      communicator.nvls_chunk = communicator.nvls_tree_chunk = kib(256);
    } else if (ppn >= 16 || (ppn <= 8 && near && graph.bw_inter < kNic800)) {
      communicator.nvls_tree_chunk = kib(64);
    }
  } else if (graph.bw_inter >= kNic800) {
    communicator.nvls_channels = ppn <= 8 ? 24 : 32;
    if (ppn <= 8) {
      communicator.nvls_chunk = communicator.nvls_tree_chunk = kib(256);
    } else {
      communicator.nvls_tree_chunk = ppn < 32 ? kib(128) : kib(64);
    }
  } else if (graph.bw_inter >= kNic400) {
    communicator.nvls_channels = 24;
    communicator.nvls_tree_chunk = near ? kib(64) : kib(128);
  }
}

}  // namespace

void set_up_nvls(Communicator& communicator, const Environment& environment) {
  const bool blackwell = gpu_generation(communicator.min_compute_capability).has_more_nvls_channels;
  communicator.nvls_channels = !blackwell ? 16 : communicator.nodes > 1 ? 32 : 24;
  communicator.nvls_chunk = kib(128);
  communicator.nvls_tree_chunk = Bytes(0);
  if (blackwell && communicator.nodes > 1 && communicator.version == Version::V2_30) {
    tune_blackwell_nodes(communicator);
  }
  communicator.nvls_channels =
      std::clamp(environment.nvls_channels.value_or(communicator.nvls_channels),
                 environment.min_ctas, environment.max_ctas);
  communicator.nvls_chunk = environment.nvls_chunk.value_or(communicator.nvls_chunk);
  if (environment.nvls_tree_max_chunk) {
    communicator.nvls_tree_chunk = *environment.nvls_tree_max_chunk;
  } else if (communicator.nvls_tree_chunk == Bytes(0)) {
    communicator.nvls_tree_chunk = communicator.nodes >= 4 ? kib(64) : communicator.nvls_chunk;
  }
}

}  // namespace trainyard::nccl
