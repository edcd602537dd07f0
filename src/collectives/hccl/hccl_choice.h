// SPDX-License-Identifier: Apache-2.0
// The choices of HCCL for a call: which way on each level, and how many loops of its buffer.
//
// Inside a server the machine decides: NPUs that are joined each to each other are a mesh; two
// meshes of four (Atlas 800 with Ascend 910) are two servers to it. Servers with unequal numbers of
// NPUs are one ring over all. Between M servers of g NPUs, N = M g, on Atlas A2 (Ascend 910B), S
// the bytes of a rank as in nccl-tests and s = S/N:
//   all_reduce                  pipeline if g > 1 and s >= 1 MiB,
//   all_gather, reduce_scatter  pipeline if g > 1 and s >= 32 KiB,
// and otherwise what costs least by steps x 60 us + bytes / bandwidth, ring before NHR before H-D_R
// where two cost the same. Bytes are equal but for H-D_R, with more unless M is a power of two,
// so steps decide: a ring for 2 and 3 servers (M-1 <= ceil(log2 M) steps), NHR for more, H-D_R
// never. On Ascend 910: H-D_R where M is a power of two or at least 8, otherwise a ring.
// all_reduce on one server: a star up to 256 KiB, else the mesh. alltoall: pairwise.
// A pipeline of more than 65,535 tasks, M (5 (g-1) + 8) + 5, twice for all_reduce, is not chosen.
//
// HCCL_ALGO overrides what is between, where the operation has the algorithm; HCCL_BUFFSIZE is the
// buffer B in MB of 2^20 bytes, 200 unless set. A loop takes of S: all_reduce on several servers B,
// on one, and with the pipeline, N B; all_gather and reduce_scatter B on several, N B on one,
// and with the pipeline, of reduce_scatter a third of that.
//
// Sources: yzh1703456/cann-hccl @9aeddc05 (CANN 8.2 of July 2025), algorithm/impl/operator
// (selectors, thresholds, costs), alg_configurator.cc (Ascend 910) and coll_executor (loops);
// mirror-cann/hccl @e1a8dc9b, docs/zh/user_guide/hccl_env (variables, which operation has which
// algorithm); public GitHub files of 2024 and 2025 (repositories not known) with constants of
// nonuniform_hierarchical_ring_base_pub.h and reduce_scatter_pipeline_pub.h (256 KiB of NHR; the
// third). RDMA without "lite" support, which has other thresholds, is not assumed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/hccl/hccl_schedule.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

enum class HcclProduct : std::uint8_t { Atlas, AtlasA2 };  // Ascend 910 and 910B.

struct HcclMachine {
  HcclProduct product = HcclProduct::AtlasA2;
  HcclShape shape;
  bool is_even = true;  // Otherwise `shape` has a server for each rank.
};

// Whether the rules are known for a part of the catalogue.
[[nodiscard]] bool has_hccl(std::string_view gpu);

// Throws ConfigError for other NPUs, and for servers whose NPUs are not meshes.
[[nodiscard]] HcclMachine hccl_machine(const Cluster& cluster);

// The variables that matter here.
struct HcclEnvironment {
  // The operations are named as HCCL_ALGO has them: "allreduce" and so on, empty for all.
  std::vector<std::pair<std::string, HcclBetween>> between = {};
  Bytes buffer = mib(200);

  // Assignments NAME=VALUE. Throws ConfigError for what is unknown or not modelled.
  [[nodiscard]] static HcclEnvironment parse(std::span<const std::string> assignments);
};

struct HcclPlan {
  HcclWay way;
  Bytes loop;    // Bytes of a loop, of the size of the call, but for the last.
  Bytes copied;  // Bytes that a rank copies from and to its own memory in all loops.
  int loops = 1;
  std::string reason = {};  // Why this way.
};

// Throws ConfigError for operations that are not modelled.
[[nodiscard]] HcclPlan choose_hccl(const HcclMachine& machine, const HcclEnvironment& environment,
                                   Operation operation, Bytes size);

}  // namespace trainyard
