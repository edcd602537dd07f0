// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/convolutional_memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "nccl/types/environment.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/walk/gradient_compression.h"
#include "parallelism/workload/memory_settings.h"

namespace trainyard {
namespace {

constexpr std::int64_t kFloatBytes = 4;
constexpr std::int64_t kIndexBytes = 8;                // torch.int64.
constexpr std::array<std::int64_t, 2> kMoments{1, 2};  // In the order of the optimizers.

}  // namespace

MemoryUse convolutional_memory(const ConvolutionalWorkload& workload, int ranks) {
  const ConvolutionalModel& model = workload.model;
  const std::int64_t element = row_of(workload.precision).element_bytes;
  const std::int64_t parameters = model.parameters();
  std::int64_t kept = model.image.elements();
  std::int64_t indices = 0;
  std::int64_t largest = 0;  // Image that comes out of a convolution.
  for (const ImageLayer& layer : model.layers) {
    kept += layer.kept;
    indices += layer.kept_indices;
    if (layer.convolution) {
      largest = std::max(largest, layer.convolution->outputs * layer.convolution->pixels_out);
    }
  }
  const MemorySettings settings;
  MemoryUse use;
  use[MemoryClass::Weights] =
      Bytes(parameters * (kFloatBytes + (element < kFloatBytes ? element : 0)));
  use[MemoryClass::Gradients] = Bytes(parameters * kFloatBytes);
  use[MemoryClass::OptimizerStates] =
      Bytes(parameters * kFloatBytes * kMoments.at(static_cast<std::size_t>(workload.optimizer)));
  use[MemoryClass::Activations] = Bytes(workload.batch * (kept * element + indices * kIndexBytes));
  use[MemoryClass::Working] = Bytes(2 * workload.batch * largest * element);
  if (ranks > 1) {
    const nccl::Environment library;
    const ParallelPlan plan = gradient_plan(workload, ranks);
    use[MemoryClass::Buffers] =
        Bytes(parameters * kFloatBytes) +
        compression_buffers(network_parameters(model.layers, plan), plan, kFloatBytes);
    use[MemoryClass::Communication] =
        (library.simple_buffer + library.ll_buffer + library.ll128_buffer) * settings.connections;
  }
  const Bytes transient = use[MemoryClass::Activations] + use[MemoryClass::Working];
  use[MemoryClass::Fragmentation] =
      Bytes(std::llround(settings.fragmentation * static_cast<double>(transient.count())));
  use[MemoryClass::Context] = settings.context;
  return use;
}

}  // namespace trainyard
