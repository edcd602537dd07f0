// SPDX-License-Identifier: Apache-2.0
// Kernels of a training step whose time is that of their bytes: residual addition, SwiGLU, RMSNorm
// and the update of Adam. They are plain kernels, each of one pass over memory; the bandwidth is
// that of all bytes that they must read and write.
#include <cuda_bf16.h>
#include <cmath>

#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

using Bf16 = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kPack = 8;  // Elements of bf16 in 16 bytes.

struct alignas(16) Pack {
  Bf16 values[kPack];
};

__device__ std::size_t own_index() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void add_kernel(Pack* to, const Pack* a, const Pack* b, std::size_t packs) {
  const std::size_t i = own_index();
  if (i >= packs) {
    return;
  }
  const Pack x = a[i];
  const Pack y = b[i];
  Pack sum;
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    sum.values[k] = Bf16(static_cast<float>(x.values[k]) + static_cast<float>(y.values[k]));
  }
  to[i] = sum;
}

__device__ float silu(float x) {
  return x / (1.0F + __expf(-x));
}

__global__ void swiglu_kernel(Pack* to, const Pack* gate, const Pack* up, std::size_t packs) {
  const std::size_t i = own_index();
  if (i >= packs) {
    return;
  }
  const Pack g = gate[i];
  const Pack u = up[i];
  Pack product;
#pragma unroll
  for (int k = 0; k < kPack; ++k) {
    product.values[k] =
        Bf16(silu(static_cast<float>(g.values[k])) * static_cast<float>(u.values[k]));
  }
  to[i] = product;
}

// One block a row. The row is read twice; the second time it is in the cache.
__global__ void rms_norm_kernel(Pack* to, const Pack* from, int packs_per_row) {
  __shared__ float sums[kThreads / 32];
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * packs_per_row;
  float sum = 0.0F;
  for (int i = static_cast<int>(threadIdx.x); i < packs_per_row; i += kThreads) {
    const Pack pack = from[row + i];
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      const auto value = static_cast<float>(pack.values[k]);
      sum += value * value;
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, distance);
  }
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  float total = 0.0F;
  for (const float part : sums) {
    total += part;
  }
  const float scale = rsqrtf(total / static_cast<float>(packs_per_row * kPack) + 1e-6F);
  for (int i = static_cast<int>(threadIdx.x); i < packs_per_row; i += kThreads) {
    Pack pack = from[row + i];
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      pack.values[k] = Bf16(static_cast<float>(pack.values[k]) * scale);
    }
    to[row + i] = pack;
  }
}

// Parameters, gradient and both moments in single precision, and the parameters in bf16 beside.
__global__ void adam_kernel(float4* parameters, float4* first, float4* second,
                            const float4* gradient, uint2* copy, std::size_t packs) {
  const std::size_t i = own_index();
  if (i >= packs) {
    return;
  }
  float4 p = parameters[i];
  float4 m = first[i];
  float4 v = second[i];
  const float4 g = gradient[i];
  const auto update = [](float& parameter, float& moment, float& square, float slope) {
    moment = 0.9F * moment + 0.1F * slope;
    square = 0.95F * square + 0.05F * slope * slope;
    parameter -= 1e-3F * moment / (sqrtf(square) + 1e-8F);
  };
  update(p.x, m.x, v.x, g.x);
  update(p.y, m.y, v.y, g.y);
  update(p.z, m.z, v.z, g.z);
  update(p.w, m.w, v.w, g.w);
  parameters[i] = p;
  first[i] = m;
  second[i] = v;
  const Bf16 low[4] = {Bf16(p.x), Bf16(p.y), Bf16(p.z), Bf16(p.w)};
  copy[i] = *reinterpret_cast<const uint2*>(low);
}

__global__ void fill_bf16(Bf16* values, std::size_t count, float value) {
  const std::size_t i = own_index();
  if (i < count) {
    values[i] = Bf16(value);
  }
}

unsigned int blocks_for(std::size_t count) {
  return static_cast<unsigned int>((count + kThreads - 1) / kThreads);
}

// Bytes of `count` elements of 2 bytes, filled with one value.
DeviceBuffer filled(std::size_t count, float value) {
  DeviceBuffer buffer(count * sizeof(Bf16));
  fill_bf16<<<blocks_for(count), kThreads>>>(buffer.as<Bf16>(), count, value);
  require_launched("fill");
  require(cudaDeviceSynchronize(), "fill");
  return buffer;
}

// The last element and one in the middle: a kernel that ends early or does nothing is found.
void require_bf16(const DeviceBuffer& buffer, std::size_t count, float expected, const char* what) {
  for (const std::size_t place : {count - 1, count / 2}) {
    Bf16 found;
    require(cudaMemcpy(&found, buffer.as<Bf16>() + place, sizeof(found), cudaMemcpyDeviceToHost),
            what);
    require_right(
        std::abs(static_cast<float>(found) - expected) <= 0.01F * std::abs(expected) ? 0 : 1, what);
  }
}

struct Shape {
  std::size_t tokens;
  std::size_t hidden;
  [[nodiscard]] std::size_t count() const { return tokens * hidden; }
};

void report(Context& context, const char* kernel, const Shape& shape, double bytes_per_element,
            const std::vector<double>& seconds) {
  const std::vector<Parameter> parameters = {
      text("kernel", kernel), integer("tokens", static_cast<std::int64_t>(shape.tokens)),
      integer("hidden", static_cast<std::int64_t>(shape.hidden))};
  add_bandwidth(context.sink, "memory-bound bandwidth", parameters,
                bytes_per_element * static_cast<double>(shape.count()), seconds);
  add_times(context.sink, "memory-bound time", parameters, seconds);
}

void measure_shape(Context& context, const Stream& stream, const Shape& shape) {
  const std::size_t packs = shape.count() / kPack;
  const DeviceBuffer a = filled(shape.count(), 3.0F);
  const DeviceBuffer b = filled(shape.count(), 2.0F);
  const DeviceBuffer to = filled(shape.count(), 0.0F);
  const auto timed = [&](const Work& work) {
    return time_kernels(context.options, stream.get(), work);
  };
  report(context, "add", shape, 6.0, timed([&](std::int64_t) {
           add_kernel<<<blocks_for(packs), kThreads, 0, stream.get()>>>(to.as<Pack>(), a.as<Pack>(),
                                                                        b.as<Pack>(), packs);
         }));
  require_bf16(to, shape.count(), 5.0F, "add");
  report(context, "swiglu", shape, 6.0, timed([&](std::int64_t) {
           swiglu_kernel<<<blocks_for(packs), kThreads, 0, stream.get()>>>(
               to.as<Pack>(), a.as<Pack>(), b.as<Pack>(), packs);
         }));
  require_bf16(to, shape.count(), 3.0F / (1.0F + std::exp(-3.0F)) * 2.0F, "swiglu");
  report(context, "rmsnorm", shape, 4.0, timed([&](std::int64_t) {
           rms_norm_kernel<<<static_cast<unsigned int>(shape.tokens), kThreads, 0, stream.get()>>>(
               to.as<Pack>(), a.as<Pack>(), static_cast<int>(shape.hidden / kPack));
         }));
  require_bf16(to, shape.count(), 1.0F, "rmsnorm");
}

void measure_adam(Context& context, const Stream& stream, std::size_t count) {
  const DeviceBuffer parameters(count * 4);
  const DeviceBuffer first(count * 4);
  const DeviceBuffer second(count * 4);
  const DeviceBuffer gradient(count * 4);
  const DeviceBuffer copy(count * 2);
  for (const DeviceBuffer* const buffer : {&parameters, &first, &second, &gradient}) {
    fill_floats(buffer->as<float>(), count, buffer == &gradient ? 1.0F : 0.0F, stream.get());
  }
  const auto seconds = time_kernels(context.options, stream.get(), [&](std::int64_t) {
    adam_kernel<<<blocks_for(count / 4), kThreads, 0, stream.get()>>>(
        parameters.as<float4>(), first.as<float4>(), second.as<float4>(), gradient.as<float4>(),
        copy.as<uint2>(), count / 4);
  });
  float moment = 0.0F;
  require(cudaMemcpy(&moment, first.as<float>() + count - 1, 4, cudaMemcpyDeviceToHost), "adam");
  // Of a gradient of 1, after so many updates.
  require_right(moment > 0.9F && moment < 1.001F ? 0 : 1, "adam");
  report(context, "adam", {1, count}, 30.0, seconds);
}

}  // namespace

void measure_elementwise(Context& context) {
  const Stream stream;
  for (const Shape shape : {Shape{128, 4096}, Shape{2048, 4096}, Shape{8192, 4096},
                            Shape{8192, 8192}, Shape{16384, 14336}}) {
    measure_shape(context, stream, shape);
  }
  measure_adam(context, stream, std::size_t{1} << 27);
}

}  // namespace trainyard::calibrate
