// SPDX-License-Identifier: Apache-2.0
// Whether Megatron-LM has one kernel for scale, mask and softmax of unfused attention.
#pragma once

#include <cstdint>

namespace trainyard {

// `matrices`: of scores, sequences of a micro-batch times heads of a rank. Blocks of the kernel
// take four at once (get_batch_per_block() of NVIDIA/Megatron-LM v2.5, for sequences of more than
// 128 tokens), and it takes 16 bits alone (is_kernel_available() of fused_softmax.py, which asks
// for `input_in_float16`). Otherwise there is an operator for each, in 32 bits.
[[nodiscard]] constexpr bool has_softmax_kernel(std::int64_t matrices, int element_bytes) {
  constexpr std::int64_t kMatricesOfBlock = 4;
  return element_bytes == 2 && matrices % kMatricesOfBlock == 0;
}

}  // namespace trainyard
