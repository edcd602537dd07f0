// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/nvls_channels.h"

#include <algorithm>

#include "nccl/types/gpu_generation.h"

namespace trainyard::nccl {
namespace {

// Applies the newest release's tuning on several nodes from compute capability 100 on
// (ncclNvlsTreeSm100Tuning). A tree chunk of zero represents the general rule.
void tune_blackwell_nodes(const Communicator& communicator, NvlsSetup& setup) {
  constexpr double kNic400 = 48.0;  // GB/s that the search finds for a NIC of 400 Gb/s
  constexpr double kNic800 = 96.0;
  const Graph& graph = communicator.aligned.nvls;
  const int ppn = communicator.min_ranks_per_node();
  const bool near = graph.type_inter <= PathType::Pxb;
  if (communicator.nodes == 2 && graph.bw_inter >= kNic400) {
    setup.channels = 32;
    setup.tree_chunk = kib(128);
    if (ppn <= 4) {
      setup.chunk = setup.tree_chunk = kib(256);
    } else if (ppn >= 16 || (ppn <= 8 && near && graph.bw_inter < kNic800)) {
      setup.tree_chunk = kib(64);
    }
  } else if (graph.bw_inter >= kNic800) {
    setup.channels = ppn <= 8 ? 24 : 32;
    if (ppn <= 8) {
      setup.chunk = setup.tree_chunk = kib(256);
    } else {
      setup.tree_chunk = ppn < 32 ? kib(128) : kib(64);
    }
  } else if (graph.bw_inter >= kNic400) {
    setup.channels = 24;
    setup.tree_chunk = near ? kib(64) : kib(128);
  }
}

}  // namespace

NvlsSetup nvls_setup(const Communicator& communicator, const Environment& environment) {
  const bool blackwell = gpu_generation(communicator.min_compute_capability).has_more_nvls_channels;
  NvlsSetup setup{.channels = !blackwell               ? 16
                              : communicator.nodes > 1 ? 32
                                                       : 24,
                  .chunk = kib(128),
                  .tree_chunk = Bytes(0)};
  if (blackwell && communicator.nodes > 1 && communicator.version == Version::V2_30) {
    tune_blackwell_nodes(communicator, setup);
  }
  setup.channels = std::clamp(environment.nvls_channels.value_or(setup.channels),
                              environment.min_ctas, environment.max_ctas);
  setup.chunk = environment.nvls_chunk.value_or(setup.chunk);
  if (environment.nvls_tree_max_chunk) {
    setup.tree_chunk = *environment.nvls_tree_max_chunk;
  } else if (setup.tree_chunk == Bytes(0)) {
    setup.tree_chunk = communicator.nodes >= 4 ? kib(64) : setup.chunk;
  }
  return setup;
}

}  // namespace trainyard::nccl
