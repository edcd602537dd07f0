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
  const Version version = communicator.version;
  // NVLS_NCHANNELS_SM90, _SM100 (from 2.25 on) and _SM100_NVL (from 2.27 on).
  const bool fewer_on_one_node = version >= Version::V2_27 && communicator.nodes == 1;
  communicator.nvls_channels = !blackwell || version < Version::V2_25 ? 16
                               : fewer_on_one_node                    ? 24
                                                                      : 32;
  communicator.nvls_chunk = kib(128);
  communicator.nvls_tree_chunk = Bytes(0);
  if (blackwell && communicator.nodes > 1 && communicator.version == Version::V2_30) {
    tune_blackwell_nodes(communicator);
  }
  communicator.nvls_channels =
      std::clamp(environment.nvls_channels.value_or(communicator.nvls_channels),
                 environment.min_ctas, environment.max_ctas);
  if (version < Version::V2_21) {
    // Trees start from a step of the buffers for Simple, and from 2.19 on have a limit from four
    // nodes on (computeColl). NCCL_NVLSTREE_MAX_CHUNKSIZE came with 2.20.
    const Bytes step(environment.simple_buffer.count() / 8);
    const bool limited = version >= Version::V2_19 && communicator.nodes >= 4;
    communicator.nvls_tree_chunk = limited ? kib(64) : step;
    if (version == Version::V2_20) {
      communicator.nvls_tree_chunk =
          std::min(step, environment.nvls_tree_max_chunk.value_or(communicator.nvls_tree_chunk));
    }
    return;
  }
  communicator.nvls_chunk = environment.nvls_chunk.value_or(communicator.nvls_chunk);
  if (environment.nvls_tree_max_chunk) {
    communicator.nvls_tree_chunk = *environment.nvls_tree_max_chunk;
  } else if (communicator.nvls_tree_chunk == Bytes(0)) {
    communicator.nvls_tree_chunk = communicator.nodes >= 4 ? kib(64) : communicator.nvls_chunk;
  }
}

}  // namespace trainyard::nccl
