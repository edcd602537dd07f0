// SPDX-License-Identifier: Apache-2.0
// Decides how gradients and weights are cut for traffic overlapped with computation.
#pragma once

#include <cstdint>

#include "parallelism/model/parallel_plan.h"

namespace trainyard {

// Parameters of a bucket of gradients or weights, as Megatron-LM has them with overlap: 40 million,
// or one million for each rank that shares gradients, so that rings of many ranks are not bound by
// latency (megatron/core/distributed/distributed_data_parallel.py: bucket_size).
[[nodiscard]] std::int64_t bucket_parameters(const ParallelPlan& plan);

}  // namespace trainyard
