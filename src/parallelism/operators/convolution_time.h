// SPDX-License-Identifier: Apache-2.0
// Times the layers of a convolutional network on one GPU.
//
// A convolution is one product (implicit GEMM): of samples times pixels by channels that come out,
// over channels and windows that come in; so are the gradients of its input and of its weights.
// Memory sees each image once, not each window. A depthwise convolution takes what its images take
// to pass memory, and so do norms, activations, sums and copies, kernel by kernel.
#pragma once

#include <cstdint>

#include "parallelism/model/image_layers.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/workload/gpu_rates.h"

namespace trainyard {

// In StepParts products are Linear, what only reads and writes is MemoryBound, and copies of
// weights and gradients to and from 16 bits are Casts.
struct ImageLayerTimes {
  StepParts forward;
  StepParts backward;
};

// Tensor cores take images with channels last (NHWC); others are transposed before and behind each
// product (NVIDIA, Convolutional Layers User's Guide, "Tensor Layouts in Memory").
[[nodiscard]] ImageLayerTimes image_layer_times(const ImageLayer& layer, std::int64_t samples,
                                                const ComputeRates& rates,
                                                bool has_channels_last = true);

// Throws ConfigError with one line where the GPU has no such precision.
[[nodiscard]] ComputeRates convolutional_rates(const GpuModel& gpu, const GpuRates& rates,
                                               Precision precision);

}  // namespace trainyard
