// SPDX-License-Identifier: Apache-2.0
// The table of the GPUs whose rules in NCCL are known: one row for each compute capability. NCCL
// compares compute capabilities all over its source; here a row has the answers (release.h has
// those that differ by release), and nobody else asks. A GPU without a row is an error: what NCCL
// does with it is not known. AMD's GPUs, on which RCCL runs, have rows of their own.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "nccl/types/types.h"

namespace trainyard::nccl {

struct GpuGeneration {
  int compute_capability = 0;        // 90 is 9.0. Of AMD's: 942 of gfx942, 910 of gfx90a.
  std::string_view gcn = {};         // "gfx942"; empty for NVIDIA's.
  std::string_view name;             // As in `gpus` of configs/nccl/profile.yaml.
  std::size_t tuning_row = 0;        // Of TuningConstants.
  double ring_latency_factor = 1.4;  // Of Ring with Simple on several nodes, from 2.18 on.

  // topo.h, search.cc and paths.cc. Data from outside takes an eighth of the way back.
  bool takes_way_back = false;
  bool needs_nvlink_to_send = false;   // GPUDirect RDMA reads only GPUs with NVLink to a peer.
  bool reads_from_peers = false;       // The receiver pulls over NVLink.
  bool needs_flush = true;             // Data may arrive after its flag.
  bool doubles_many_channels = true;   // More than four channels below 50 GB/s are doubled too.
  bool searches_all_nic_paths = true;  // Otherwise no further than the furthest NIC of a GPU.
  bool tries_tree_after_balanced = false;
  // GB/s of a link between GPUs, and the rates that the search tries: zero and none where they
  // follow the release (release.h).
  float own_link = 0.0F;
  std::span<const float> own_speeds = {};

  // tuning.cc, connect.cc, nvls.cc and p2p.cc.
  bool has_nvls = false;
  bool mixes_ll128 = false;         // LL128 with other generations, and over PXN if that is set.
  bool slows_collnet = false;       // CollNetDirect gets 85 % of the bus.
  bool doubles_fast_rings = false;  // Fast rings on several nodes have twice the channels.
  bool corrects_nvls_tree = false;
  bool has_more_nvls_channels = false;
  bool has_large_network_chunks = false;  // For sends and receives on ARM from 2.30 on.

  [[nodiscard]] bool is_amd() const { return !gcn.empty(); }
};

// Returns the row of a compute capability such as 90. Throws ConfigError, which begins with `place`
// ("the server: line 7: "), if there is none.
[[nodiscard]] const GpuGeneration& gpu_generation(int compute_capability,
                                                  std::string_view place = "NCCL: ");

// Returns the row of one of AMD's GPUs, as RCCL's topology files name it: "gfx942",
// "gfx942:sramecc+:xnack-" or, in older ones, "910". Null if its rules are not known.
[[nodiscard]] const GpuGeneration* amd_generation(std::string_view gcn);

}  // namespace trainyard::nccl
