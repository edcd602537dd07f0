// SPDX-License-Identifier: Apache-2.0
// The MSCCL algorithms that are shipped in configs/algorithms, as text.
#pragma once

#include <string>

namespace trainyard {

// allreduce along a ring: one thread block for each GPU.
[[nodiscard]] std::string msccl_ring_all_reduce(int gpus);
// allreduce in two steps: everybody sends everybody its part, then the sum of its own.
[[nodiscard]] std::string msccl_all_pairs_all_reduce(int gpus);
// allgather in place by recursive doubling: one thread block for each round. A power of two.
[[nodiscard]] std::string msccl_doubling_all_gather(int gpus);

}  // namespace trainyard
