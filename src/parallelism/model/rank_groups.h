// SPDX-License-Identifier: Apache-2.0
// Lists which ranks of a plan work together, for each kind of parallelism.
//
// A rank is a place in a grid whose axes lie as ParallelPlan::order says: ranks of the first axis
// are neighbours. Expert ranks have a grid of their own over the ranks of one stage of the
// pipeline, in the order of their numbers: expert tensor ranks are neighbours, then expert ranks,
// then those that hold the same experts, as in Megatron-Core (megatron/core/parallel_state.py).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallelism/model/parallel_plan.h"

namespace trainyard {

enum class RankGroupKind : std::uint8_t {
  Tensor,
  Context,
  Pipeline,  // In the order of the pipeline's ranks.
  Gradient,  // The same dense weights: data and context ranks.
  Shard,     // The ranks among these over which ZeRO shards,
  Replica,   // and those that hold the same shard.
  Expert,
  ExpertTensor,
  ExpertGradient,  // The same experts.
  Ends,            // First and last stage, of a model whose head is its embedding.
};

[[nodiscard]] int group_size(const ParallelPlan& plan, RankGroupKind kind);

// The ranks with which `rank` works, in rising order of their place in the group.
[[nodiscard]] std::vector<int> group_of(const ParallelPlan& plan, RankGroupKind kind, int rank);

// Returns the group of this kind on most servers, the first of several. `server_of_rank` has a
// number for each rank.
[[nodiscard]] std::vector<int> widest_group(const ParallelPlan& plan, RankGroupKind kind,
                                            std::span<const int> server_of_rank);

}  // namespace trainyard
