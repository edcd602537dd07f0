// SPDX-License-Identifier: Apache-2.0
// Memory of a GPU that trains a convolutional network, at its peak: the start of the backward pass,
// when all activations are there and gradients of two images are.
#pragma once

#include "parallelism/memory/step_memory.h"
#include "parallelism/workload/convolutional_workload.h"

namespace trainyard {

// Weights, gradients and what the optimizer has are in 32 bits; in 16 bits the copies that
// torch.autocast keeps are beside them, with several ranks the buckets of gradients.
[[nodiscard]] MemoryUse convolutional_memory(const ConvolutionalWorkload& workload, int ranks);

}  // namespace trainyard
