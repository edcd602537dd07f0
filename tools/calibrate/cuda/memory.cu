// SPDX-License-Identifier: Apache-2.0
// Copy, read, write and reduction in GPU memory by number of CTAs, with packs of 16 bytes and eight
// of them in flight per thread, as communication kernels do it: one CTA has a rate of its own, and
// many share that of the memory.
#include <array>
#include <string>

#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 8;

// Calls visit(i) for the packs of this thread, eight at a time.
template <typename Load, typename Store>
__device__ void for_packs(std::size_t count, const Load& load, const Store& store) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < count; i += kUnroll * stride) {
    uint4 packs[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      packs[u] = load(i + u * stride);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      store(i + u * stride, packs[u]);
    }
  }
  for (; i < count; i += stride) {
    store(i, load(i));
  }
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::size_t count) {
  for_packs(
      count, [=](std::size_t i) { return from[i]; }, [=](std::size_t i, uint4 p) { to[i] = p; });
}

// The sum of all words, which the caller knows: nothing may be optimised away.
__global__ void read_kernel(const uint4* from, std::size_t count, unsigned int* sum) {
  unsigned int mine = 0;
  for_packs(
      count, [=](std::size_t i) { return from[i]; },
      [&mine](std::size_t, uint4 p) { mine += p.x + p.y + p.z + p.w; });
  atomicAdd(sum, mine);
}

__global__ void write_kernel(uint4* to, std::size_t count, unsigned int value) {
  for_packs(
      count, [=](std::size_t) { return make_uint4(value, value, value, value); },
      [=](std::size_t i, uint4 p) { to[i] = p; });
}

__device__ uint4 sum_of(uint4 a, uint4 b) {
  const auto add = [](unsigned int x, unsigned int y) {
    return __float_as_uint(__uint_as_float(x) + __uint_as_float(y));
  };
  return make_uint4(add(a.x, b.x), add(a.y, b.y), add(a.z, b.z), add(a.w, b.w));
}

__global__ void reduce_kernel(uint4* to, const uint4* a, const uint4* b, std::size_t count) {
  for_packs(
      count, [=](std::size_t i) { return sum_of(a[i], b[i]); },
      [=](std::size_t i, uint4 p) { to[i] = p; });
}

struct Buffers {
  DeviceBuffer a;
  DeviceBuffer b;
  DeviceBuffer to;
  DeviceBuffer sum{sizeof(unsigned int)};
  std::size_t bytes;
  Stream stream;

  explicit Buffers(std::size_t size) : a(size), b(size), to(size), bytes(size) {}
  [[nodiscard]] std::size_t packs() const { return bytes / sizeof(uint4); }
  [[nodiscard]] std::size_t words() const { return bytes / sizeof(std::uint32_t); }
  void clear() const {
    require(cudaMemsetAsync(to.as<void>(), 0xEE, bytes, stream.get()), "cudaMemsetAsync");
  }
};

void report(Context& context, const char* quantity, int ctas, double bytes,
            const std::vector<double>& seconds) {
  add_bandwidth(context.sink, quantity, {integer("ctas", ctas), integer("threads", kThreads)},
                bytes, seconds);
}

void measure_copy(Context& context, const Buffers& buffers, int ctas) {
  fill_pattern(buffers.a.as<std::uint32_t>(), buffers.words(), buffers.stream.get());
  buffers.clear();
  const auto seconds = time_on_stream(context.options, buffers.stream.get(), [&](std::int64_t) {
    copy_kernel<<<ctas, kThreads, 0, buffers.stream.get()>>>(
        buffers.to.as<uint4>(), buffers.a.as<uint4>(), buffers.packs());
  });
  require_right(
      count_wrong_words(buffers.to.as<std::uint32_t>(), buffers.words(), 0, buffers.stream.get()),
      "copy");
  // The bytes that are copied, each of which is read and written.
  report(context, "copy bandwidth", ctas, static_cast<double>(buffers.bytes), seconds);
}

void measure_read(Context& context, const Buffers& buffers, int ctas) {
  require(cudaMemsetAsync(buffers.sum.as<void>(), 0, sizeof(unsigned int), buffers.stream.get()),
          "cudaMemsetAsync");
  // Words of 1: the sum counts them, modulo 2^32, in every run.
  write_kernel<<<1024, kThreads, 0, buffers.stream.get()>>>(buffers.b.as<uint4>(), buffers.packs(),
                                                            1);
  unsigned int runs = 0;
  const auto seconds = time_on_stream(context.options, buffers.stream.get(), [&](std::int64_t) {
    read_kernel<<<ctas, kThreads, 0, buffers.stream.get()>>>(buffers.b.as<uint4>(), buffers.packs(),
                                                             buffers.sum.as<unsigned int>());
    ++runs;
  });
  unsigned int sum = 0;
  require(cudaMemcpy(&sum, buffers.sum.as<void>(), sizeof(sum), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
  require_right(sum == static_cast<unsigned int>(buffers.words()) * runs ? 0 : 1, "read");
  report(context, "read bandwidth", ctas, static_cast<double>(buffers.bytes), seconds);
}

void measure_write(Context& context, const Buffers& buffers, int ctas) {
  buffers.clear();
  const auto seconds = time_on_stream(context.options, buffers.stream.get(), [&](std::int64_t) {
    write_kernel<<<ctas, kThreads, 0, buffers.stream.get()>>>(buffers.to.as<uint4>(),
                                                              buffers.packs(), 0x3F800000U);
  });
  require_right(
      count_wrong_floats(buffers.to.as<float>(), buffers.words(), 1.0F, buffers.stream.get()),
      "write");
  report(context, "write bandwidth", ctas, static_cast<double>(buffers.bytes), seconds);
}

void measure_reduce(Context& context, const Buffers& buffers, int ctas) {
  fill_floats(buffers.a.as<float>(), buffers.words(), 1.5F, buffers.stream.get());
  fill_floats(buffers.b.as<float>(), buffers.words(), 2.25F, buffers.stream.get());
  buffers.clear();
  const auto seconds = time_on_stream(context.options, buffers.stream.get(), [&](std::int64_t) {
    reduce_kernel<<<ctas, kThreads, 0, buffers.stream.get()>>>(
        buffers.to.as<uint4>(), buffers.a.as<uint4>(), buffers.b.as<uint4>(), buffers.packs());
  });
  require_right(
      count_wrong_floats(buffers.to.as<float>(), buffers.words(), 3.75F, buffers.stream.get()),
      "reduction");
  // The bytes of the result: two are read and one is written for each.
  report(context, "reduction bandwidth", ctas, static_cast<double>(buffers.bytes), seconds);
}

}  // namespace

void measure_memory(Context& context) {
  const Buffers buffers(context.beyond_l2());
  const int all = context.multiprocessors();
  for (const int ctas : {1, 2, 4, 8, 16, 24, 32, 64, all, 4 * all, 8 * all}) {
    measure_copy(context, buffers, ctas);
    measure_read(context, buffers, ctas);
    measure_write(context, buffers, ctas);
    measure_reduce(context, buffers, ctas);
  }
}

}  // namespace trainyard::calibrate
