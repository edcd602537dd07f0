// SPDX-License-Identifier: Apache-2.0
// Execution plans of MSCCL++ as its language wrote them before August 2025, in the newer form.
//
// Names and meanings are from microsoft/mscclpp before be6a941 ("New DSL implementation"),
// src/executor/execution_plan.cc and src/include/execution_kernel.hpp:
//
//   older                                     newer
//   inputChunks, outputChunks, scratchChunks  input_chunks, output_chunks, scratch_chunks
//   channel {srcbuff, dstbuff, type, ...}     a channel and, for its dstbuff, a remote buffer
//   sm, proxy                                 memory, port
//   srcs, srcbuff and srcoff                  src_buff in the memory of this GPU
//   dsts, dstbuff and dstoff                  dst_buff in the memory of this GPU
//   i_cids of rrc, rrcs, get                  src_buff in the memory of others
//   o_cids of puts, rs, rrcs, rspkt           dst_buff in the memory of others
//   rs, rrc, rrcs, tpkt, cpkt, rpkt, rspkt    res, rre, rres, cpkt, upkt, repkt, respkt
//
// An operation keeps its place, so that errors name that of the file. chunkGroups says how a size
// that no chunk divides is cut, and has no effect here.
#pragma once

#include <nlohmann/json.hpp>

#include "collectives/msccl/plan_node.h"

namespace trainyard {

[[nodiscard]] bool is_older_plan(const PlanNode& root);

// Throws ConfigError for what no older plan may have; the rest is found where the result is read.
[[nodiscard]] nlohmann::json to_newer_plan(const PlanNode& root);

}  // namespace trainyard
