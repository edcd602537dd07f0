// SPDX-License-Identifier: Apache-2.0
// The messages of a call of HCCL, by what it has chosen for the two levels. Rank m g + l is the
// l-th of the g ranks of server m of M, N = M g; column l is the l-th of all servers. Chunk r is
// the block of rank r, of all_reduce a part of the data.
//
//   mesh      inside a server everybody sends everybody his block, or adds up his own;
//   star      everything to rank 0, which adds up, and back;
//   ring, H-D_R, NHR, NB
//             in each column: M-1 steps, or ceil(log2 M) by halving and doubling, or (NHR and NB)
//             as follows;
//   pipeline  a ring in each column, beside which the mesh handles what the step before brought;
//   pairwise  in each column, one partner after the other.
//
// all_reduce is reduce_scatter inside, all_reduce between, all_gather inside; all_gather goes first
// inside and then between, reduce_scatter the other way round, since blocks are then next to each
// other: each rank sends g blocks of a server at once over its own NIC. The pipeline sends a block
// once. alltoall goes first inside, to the column of its target.
//
// NHR and NB, nonuniform hierarchical ring and nonuniform Bruck, have K = ceil(log2 M) steps for
// any M and differ in the order of blocks in memory alone. all_gather: in step k, with distance d =
// 2^(K-1-k), rank r sends to r + d the blocks r, r - 2d, r - 4d, ..., floor((M-1+d) / 2d) of them;
// reduce_scatter is the same backwards. At most 256 KiB of all_reduce go along one tree instead:
// whole to rank 0 in K steps, and back.
//
// Sources: mirror-cann/hccl @e1a8dc9b, docs/zh/user_guide/coll_algo_intro (what each does, steps,
// order of levels), src/ops/all_gather/template/aicpu/ins_temp_all_gather_nhr.cc (blocks of NHR);
// yzh1703456/cann-hccl @9aeddc05, coll_executor (order of levels).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "collectives/schedule/schedule.h"

namespace trainyard {

enum class HcclInside : std::uint8_t { None, Mesh, Star };
enum class HcclBetween : std::uint8_t {
  None,
  Ring,
  HalvingDoubling,
  Nhr,
  NhrTree,  // NHR for short messages.
  Nb,
  Pipeline,
  Pairwise,
};

struct HcclWay {
  HcclInside inside = HcclInside::None;
  HcclBetween between = HcclBetween::None;

  friend bool operator==(const HcclWay&, const HcclWay&) = default;
};

// "mesh", "ring", "H-D_R", ...: as HCCL_ALGO and its documents have them; None: "-".
[[nodiscard]] std::string_view to_string(HcclInside inside);
[[nodiscard]] std::string_view to_string(HcclBetween between);

struct HcclShape {
  std::uint32_t servers = 1;
  std::uint32_t per_server = 1;  // Ranks of each.

  [[nodiscard]] std::uint32_t ranks() const { return servers * per_server; }
};

// The ways that choose_hccl() gives for these operations: all_reduce, all_gather, reduce_scatter,
// alltoall and sendrecv (of which the way is empty).
[[nodiscard]] std::unique_ptr<Schedule> hccl_schedule(Operation operation, const HcclShape& shape,
                                                      const HcclWay& way);

}  // namespace trainyard
